/**
 * Answers the requests of peers. {@link io.pmfs.cluster.server.PeerServer} listens, {@link
 * io.pmfs.cluster.server.PeerResponder} answers from a {@link io.pmfs.cluster.server.PeerService};
 * the manual is in io.pmfs.cluster.
 */
@NullMarked
package io.pmfs.cluster.server;

import org.jspecify.annotations.NullMarked;
