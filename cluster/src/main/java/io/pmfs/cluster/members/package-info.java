/**
 * The members of a cluster: how nodes find each other, prove that they know the secret, and learn
 * who is there and who is missing. Knows nothing of files.
 *
 * <p><b>Start reading</b> at {@link Membership} and {@link View}, the contract, and at {@link
 * Member}, a node. {@link InfinispanMembership} implements it: a JGroups group whose protocols are
 * in {@link GroupChannel}, with a cache on every member that holds the {@link Announcements} of
 * all.
 *
 * <ul>
 *   <li>Finding: {@link NodeSearch} looks on the hosts of a {@link NodeList}, with {@link
 *       ConnectionProbes}; with a shared directory JGroups' own files do that. {@link LocalAddress}
 *       is the address that this node names to the others.
 *   <li>Proving: {@link ClusterSecret}, {@link SecretTls} and {@link ProvenServerSocket}.
 *   <li>Missing nodes: {@link RollCall} compares members with the expected hosts, {@link
 *       Attendance} calls it each second and keeps it in a file, {@link Roll} is the result.
 *   <li>{@link NodeId} is this node's id, kept with its copies.
 * </ul>
 *
 * <p><b>Threads</b>
 *
 * <ul>
 *   <li>{@code members}, one, joins, looks and calls the listeners; only it uses the channel and
 *       {@link Announcements}. Infinispan's threads report changes through {@link ChangeListener}.
 *       {@link InfinispanMembership#close} waits 10 s for it to leave the group.
 *   <li>{@code pmfs-attendance}, one: {@link Attendance#close} ends it without waiting, because it
 *       may be resolving a name.
 *   <li>{@code pmfs-group-search-N}, up to 4, and {@code pmfs-group-send-N}, up to 64, end after 5
 *       s without work. {@code pmfs-group-accept}, and {@code pmfs-group-handshake} for each
 *       handshake, up to 64, end with their socket or after 3 s. The others are JGroups' and
 *       Infinispan's.
 * </ul>
 *
 * <p><b>Locks</b> are innermost, except that of {@link NodeSearch} while names of hosts are
 * resolved: only searches wait for it.
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>A client connects and stays silent, and JGroups accepts nobody else. Cure: {@link
 *       ProvenServerSocket} has a thread and a limit for each handshake, and a limit for each
 *       address.
 *   <li>JGroups tries one dead host after another on the thread of its timers. Cure: {@link
 *       NodeSearch} tries all at once, on threads of its own.
 *   <li>A queue for each connection has a thread that spins for ever if the connection is closed
 *       while it is made. Cure: {@link GroupChannel} has no such queues.
 *   <li>While many nodes join, announcements that wait for every member's answer hold locks longer
 *       than others wait for them, and are repeated without end. Cure: {@link Announcements} waits
 *       for no answers, except to a farewell.
 * </ol>
 *
 * <p><b>What may be forgotten</b>
 *
 * <ul>
 *   <li>The group. A node that cannot join goes on alone and tries again, after at most 30 s. When
 *       parts of a group merge, announcements are lost; so each node repeats its own.
 *   <li>Views of two members may differ. The later instance of a member counts.
 *   <li>An id that cannot be read is replaced: peers then see a new node, which owns other paths.
 * </ul>
 *
 * <p><b>What a stranger is allowed to do.</b> Nothing before the handshake: both sides prove by TLS
 * that they know the secret and the cluster's name. A member may send any announcement: it is
 * parsed with limits, and its name is shown by {@link io.pmfs.metadata.PathText}. The process
 * refuses serialized Java objects. Only keys derived from the secret leave {@link ClusterSecret},
 * and its text for the session's file.
 */
@NullMarked
package io.pmfs.cluster.members;

import org.jspecify.annotations.NullMarked;
