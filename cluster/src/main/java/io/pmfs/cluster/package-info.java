/**
 * The nodes of a job that serve one dataset together: who they are, who owns what, and asking them.
 */
@NullMarked
package io.pmfs.cluster;

import org.jspecify.annotations.NullMarked;
