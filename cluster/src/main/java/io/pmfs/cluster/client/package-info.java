/**
 * Asks peers for names, attributes and bytes. The manual, with threads, locks and deadlocks, is in
 * io.pmfs.cluster.
 *
 * <p><b>Start reading</b> at {@link PeerClient}, the contract, and {@link HttpPeerClient}, which
 * has a {@link PeerLink} for each peer. A request takes one of the {@link PeerConnections}, as many
 * as are allowed for its use, and becomes a {@link PeerExchange}: the asking thread waits in it,
 * while an event loop passes what arrives ({@link PeerClientHandler}) to one of the {@link
 * PeerReaders}. Small files that would have to wait for others are asked for together ({@link
 * SmallReads}).
 *
 * <p>Two limits end every wait: {@link PeerTimeouts}, for a part of one request, and {@link
 * Patience}, for all that a reader asks of peers. Neither runs while a peer says that it waits for
 * the source itself. An event loop never waits, and writes to a reader's buffer only while that
 * reader waits in its exchange.
 *
 * <p>Nothing that a peer answers is believed by itself: the asking thread compares content with its
 * checksums, {@link PeerReaders} refuse another version than was asked for, and every failure is a
 * {@link io.pmfs.cluster.peers.PeerException}, a miss.
 */
@NullMarked
package io.pmfs.cluster.client;

import org.jspecify.annotations.NullMarked;
