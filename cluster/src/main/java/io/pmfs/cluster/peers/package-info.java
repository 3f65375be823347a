/**
 * Requests between nodes, by HTTP: the client, and the server with its workers. The manual of the
 * module is in io.pmfs.cluster.
 */
@NullMarked
package io.pmfs.cluster.peers;

import org.jspecify.annotations.NullMarked;
