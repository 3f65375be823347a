/**
 * The nodes of a job that serve one dataset together: membership, ownership of paths, and requests
 * between nodes.
 *
 * <p><b>Start reading</b> at {@link Cluster}, which puts the parts together, and {@link PeerStore},
 * the source as the rest of a node sees it; {@link PeerFiles} has its contents. {@link Owners} says
 * whom to ask, {@link PeerQuestions} leaves out who failed, {@link
 * io.pmfs.cluster.client.HttpPeerClient HttpPeerClient} asks, {@link
 * io.pmfs.cluster.server.PeerServer PeerServer} and {@link DatasetService} answer, {@link
 * io.pmfs.cluster.members.InfinispanMembership InfinispanMembership} knows who is there. {@link
 * OutputCluster} is the same for writable mounts; both are a {@link LocalNode}.
 *
 * <p><b>Threads.</b> {@link Cluster#open} starts the server and the membership; {@link
 * Cluster#close} ends them, and the client.
 *
 * <ul>
 *   <li>Asking: the caller's thread waits in {@link io.pmfs.cluster.client.PeerExchange
 *       PeerExchange}, for all peers together as long as its {@link io.pmfs.cluster.client.Patience
 *       Patience} lasts; two event loops {@code pmfs-peer-client} copy what arrives.
 *   <li>Answering: two event loops {@code pmfs-peer-server}, and five groups of {@link
 *       io.pmfs.cluster.server.Workers Workers}: {@code names}, {@code data}, {@code copies},
 *       {@code outputs} and {@code interrupts}. {@link io.pmfs.cluster.server.PeerLimits
 *       PeerLimits} has the numbers of the first two; {@code copies} has a quarter of those of
 *       {@code data}, and {@code outputs} four times those of {@code names}. They end after 30 s
 *       without work. {@link io.pmfs.cluster.server.PeerServer#close PeerServer.close} waits up to
 *       30 s for each group and does not interrupt it.
 *   <li>{@code members}, one: joins, looks who is there, and calls the {@link LocalNode} with each
 *       new view. The other threads of the group are JGroups' and Infinispan's.
 *   <li>{@code pmfs-attendance}, one: looks each second who is missing ({@link
 *       io.pmfs.cluster.members.Attendance Attendance}), resolves names of hosts, and writes a
 *       file.
 *   <li>{@code pmfs-group-accept}, and {@code pmfs-group-handshake} for each TLS handshake ({@link
 *       ProvenServerSocket}). {@code pmfs-group-search-N}, up to four, and {@code
 *       pmfs-group-send-N}, up to 64: look for members, and end after 5 s without work.
 *   <li>{@code pmfs-lonely-copies}, with {@code --remote-copies never}: {@link LonelyCopies}.
 *   <li>{@code pmfs-slow-peers}, one, until the {@link PeerStore} is closed; {@code
 *       pmfs-source-probe}, up to four for each slow peer ({@link SourceProbes}).
 * </ul>
 *
 * <p><b>Lock order</b>, outermost first. Each name is the monitor of its object; all others of the
 * package but that of a {@code PeerFile} are innermost.
 *
 * <pre>{@code
 * locks of io.pmfs.fs (a directory or an inode), a claimed block < a question to a peer
 * Cluster, OutputCluster < PeerConnections
 * PeerExchange < SmallRead
 * }</pre>
 *
 * <ul>
 *   <li>A thread that asks a peer may hold the lock of a directory or an inode, or the claim of a
 *       block, and other requests to this node may need them.
 *   <li>No monitor of this package is held while a peer is asked. That of a file of {@link
 *       PeerFiles} is held while the source opens the file.
 *   <li>An event loop never waits: it must not call the source, a tier or {@link
 *       io.pmfs.cluster.server.PeerAnswer#send PeerAnswer.send}.
 * </ul>
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>Two nodes each compare a file at the other, with locks that several files share. Cure:
 *       {@code Importer} of {@code io.pmfs.fs} has a lock for each inode, and a worker that answers
 *       asks only about directories closer to the root.
 *   <li>Nodes that see different members each ask the other for a directory whose lock they hold.
 *       Cure: {@link PeerStore#asksElsewhere}; {@link DatasetService} refuses, and the asker goes
 *       to the source.
 *   <li>Workers for names wait for each other's workers. Cure: such requests are refused instead of
 *       queued ({@link io.pmfs.cluster.server.PeerServer PeerServer}), and a caller waits only
 *       briefly for a connection.
 *   <li>Requests for copies only wait behind reads that wait for such requests. Cure: connections
 *       ({@link io.pmfs.cluster.client.PeerConnections PeerConnections}), batches ({@link
 *       io.pmfs.cluster.client.PeerLink PeerLink}) and workers of their own, which wait for no
 *       other node. A copy that is being made gives the blocks that it has, and refuses the others.
 *   <li>Reads go from owner to owner. Cure: {@link PeerFiles#answering}: a worker reads from tiers,
 *       from copies of other nodes and from the source.
 *   <li>A worker answers by a fetch of its own node that waits for the asker. That takes two nodes
 *       that own the file (replicas) and do not agree which is first. Cure: {@link
 *       PeerStore#readsElsewhere}; {@link DatasetService} refuses, and the asker goes to the
 *       source.
 *   <li>Slow peers occupy all workers. Cure: {@link io.pmfs.cluster.server.Workers#await
 *       Workers.await} gives the place away, and the thread continues without waiting for a place.
 *   <li>A batch waits for helpers that never start, or for memory that it holds. Cure: {@link
 *       BatchAnswer} waits only for files that are being read, and never for memory.
 *   <li>A small read waits without a limit for the thread that sends it. Cure: that thread ends
 *       every read and passes its turn on in any case ({@link io.pmfs.cluster.client.SmallReads
 *       SmallReads}).
 *   <li>A peer waits for its source without end. Cure: {@link SourceProbes}.
 *   <li>Readers of a large file on several nodes wait for each other's blocks. Cure: a node gives
 *       what it has and waits for nothing ({@link io.pmfs.stage.Stager#servePeerFromCopy
 *       servePeerFromCopy}); the one that lacks a block asks again, with a limit, and then the
 *       owner and the source ({@link FileHolders}).
 *   <li>A silent client keeps members from connecting. Cure: {@link
 *       io.pmfs.cluster.members.ProvenServerSocket ProvenServerSocket}.
 *   <li>Hosts that do not answer keep a member from all else. Cure: {@code NodeSearch} of {@link
 *       io.pmfs.cluster.members}.
 * </ol>
 *
 * <p><b>What may be forgotten.</b>
 *
 * <ul>
 *   <li>The source is authoritative. A peer that fails, refuses or is late is a miss.
 *   <li>The latest view decides who owns what; nodes may see different ones. {@link Owners} keeps
 *       earlier views only to find copies.
 *   <li>A node's id is kept on its disk ({@link io.pmfs.cluster.members.NodeId NodeId}), because it
 *       decides what the node owns.
 *   <li>{@link HolderHints}, {@link Handout}, {@link FileHolders}, {@link Suspects}, {@link
 *       LostTime}, {@link WrongClaims} and the paths in {@link PeerStore} and {@link PeerFiles}
 *       that were listed or read here are hints.
 * </ul>
 */
@NullMarked
package io.pmfs.cluster;

import org.jspecify.annotations.NullMarked;
