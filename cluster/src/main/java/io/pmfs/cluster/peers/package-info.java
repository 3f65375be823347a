/**
 * The protocol between nodes, as both ends know it: paths, bodies, headers, limits, signatures. The
 * manual of the module is in io.pmfs.cluster.
 */
@NullMarked
package io.pmfs.cluster.peers;

import org.jspecify.annotations.NullMarked;
