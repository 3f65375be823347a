/**
 * Answers the requests of peers. The manual, with threads, locks and deadlocks, is in
 * io.pmfs.cluster.
 *
 * <p><b>Start reading</b> at {@link PeerServer}, which listens. A {@link PeerConnection} reads
 * requests on its event loop, one at a time, and makes a {@link PeerRequest} of each head. {@link
 * Workers} of one of three groups (names, data, copies only) run {@link PeerResponder}, which asks
 * the {@link PeerService} for names and bytes, {@link NodeRequests} about the node itself, and
 * {@link OutputRequests} about a writable mount. {@link DirectoryAnswer} and {@link BatchAnswer}
 * are answers of many parts, {@link PeerAnswer} writes any, and {@link PeerSinks} take content from
 * tiers.
 *
 * <p>A worker may wait for the source without a limit; a peer that takes its answer slowly may not
 * hold a worker's place ({@link Workers#await}). Content that waits to be sent is limited by {@link
 * AnswerMemory}, everything else by {@link PeerLimits}. What is beyond a limit is refused, and the
 * peer goes to the source.
 *
 * <p><b>What a client is allowed to do.</b> Before anything else is done for a request, its
 * signature is checked, and its body against the signed hash. The Host header must be an address,
 * not a name. Connections are limited in all and for each address, and so is the time for each part
 * of a request.
 */
@NullMarked
package io.pmfs.cluster.server;

import org.jspecify.annotations.NullMarked;
