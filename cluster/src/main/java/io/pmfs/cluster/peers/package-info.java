/**
 * The protocol between nodes, as both ends know it: paths, bodies, headers, limits, signatures. The
 * manual of the module is in io.pmfs.cluster.
 *
 * <p><b>Start reading</b> at docs/formats.md, Peers, and {@link PeerFormat}, the only place that
 * encodes and decodes bodies and headers. {@link PeerPath} does that with paths, {@link PeerFrames}
 * are the kinds of frames in a streamed answer, {@link ByteRange} is a part of a file, {@link
 * HeldBlocks} what a node says about a file's blocks, and {@link HttpLimits} has the sizes that
 * both ends know. A server refuses by a {@link Refusal}; what a client did not get is a {@link
 * PeerException}, which is a miss and never a failure.
 *
 * <p>The package starts no threads. Only {@link ReplayWindows} has a lock, which is innermost.
 *
 * <p><b>What the other end is allowed to do.</b> Send anything: decoding throws
 * IllegalArgumentException for malformed input, and nothing else. Each request is signed by {@link
 * RequestSignature} for one instance of one server, for a minute, and is accepted once. Headers
 * that are hints are not signed. With {@link PeerTls} both sides also have a certificate, of which
 * the name does not count.
 */
@NullMarked
package io.pmfs.cluster.peers;

import org.jspecify.annotations.NullMarked;
