/**
 * The nodes of a job that serve one dataset together: membership, ownership of paths, and requests
 * between nodes.
 */
@NullMarked
package io.pmfs.cluster;

import org.jspecify.annotations.NullMarked;
