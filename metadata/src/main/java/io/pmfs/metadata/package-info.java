/**
 * The namespace of a dataset: names, inodes, and which tier holds a copy of which file. It never
 * asks the source: callers pass what the source said.
 *
 * <p><b>Start reading</b> at {@link Namespace}, the contract, and at its values {@link Inode},
 * {@link SourceEntry} and {@link CopyRecord}. {@link RocksNamespace} implements it: {@link Keys}
 * and {@link Values} are the layout (docs/formats.md), {@link Database} keeps the bytes, and {@link
 * RecentInodes} is its cache. {@link RocksImport} writes the names of one directory, and {@link
 * AttributeRecords} what the source said of files beside their attributes, many at once. {@link
 * StateDirectory} opens the state, and {@link StateSession} decides what of it still holds. {@link
 * FileName}, {@link Attributes}, {@link PathText} and {@link PosixAcl} are values that the whole
 * program uses.
 *
 * <p><b>Numbers.</b> The kernel knows files by inode numbers, and keeps open files and pages by
 * them longer than a daemon lives. So a number never stands for another file.
 *
 * <ul>
 *   <li>{@link InodeNumbers} gives each number once. A bound above it is recorded before it is
 *       used: in the state, and by {@link NumberMark} in a file elsewhere, for the next daemon of
 *       the session.
 *   <li>{@link Resolution} finds the number of each entry of an import: the one that the name had,
 *       if it stands for the same file; the one of another name of the same file; the one that was
 *       lost (below); else a new one. Entries that only another node described join no other name.
 * </ul>
 *
 * <p><b>Names that go.</b> An inode lives as long as a name stands for it. The batch that removes a
 * name, or has it stand for another inode, also notes that the inode {@linkplain
 * Namespace#lostNames lost a name}. What follows may take long, and begins again after a crash: the
 * inode goes by another name, or it is removed, then its copies, then the note.
 *
 * <p><b>When the state fails</b> (docs/decisions/0034). Its disk may be full, read-only, damaged or
 * gone, and readers must not notice.
 *
 * <ol>
 *   <li>It cannot be written: {@link Database} puts an {@link Overlay} in memory above it. Changes
 *       go there, and reads look there first. Recorded copies are still served, and no new ones are
 *       made. {@link Namespace#failure} says why.
 *   <li>It cannot be read, or is damaged: state and overlay are dropped, and an empty overlay is
 *       all there is. An overlay that has become too large is also dropped as a whole, when the
 *       next import begins, at most every five seconds. Each such loss raises {@link
 *       Namespace#losses}. What had begun before throws {@link NamespaceLostException}, and its
 *       caller begins again.
 *   <li>After a loss, {@link Lineage} connects numbers and files: for each inode of this session it
 *       has the directory and hashes of the name and the file. The owner of a number asks {@link
 *       Namespace#seenIn} and lists that directory again. {@link Resolution} then gives each name
 *       its former number; if the name got another one meanwhile, {@link Namespace#adopt} gives the
 *       file both. It keeps at most 2²¹ inodes; the numbers of later ones are stale after a loss.
 *   <li>{@link Namespace#recover}, which the daemon calls now and then, opens the state again. If
 *       it has all that it had, or is new, the overlay is written into it, names before listings.
 *       Otherwise the state is right, because copies are recorded by its numbers, and the overlay
 *       counts as lost.
 * </ol>
 *
 * <p><b>Threads.</b> The package starts none. While {@link Namespace#recover} opens the disk, all
 * other calls wait. A disk that hangs instead of failing holds every call that needs it; {@link
 * Namespace#recentInode} needs neither disk nor lock.
 *
 * <p><b>Lock order</b>, outermost first.
 *
 * <pre>{@code
 * RocksNamespace.inodeUpdates < Database.use (shared) < InodeNumbers, a lock of RecentInodes
 * }</pre>
 *
 * <ul>
 *   <li>{@code inodeUpdates} is held from reading inodes to writing their changes.
 *   <li>{@code Database.use} is held shared during each call, and exclusive to exchange state or
 *       overlay. The disk is asked with it held.
 * </ul>
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>The visitor of a listing holds {@code use} and changes an inode, for which it needs {@code
 *       inodeUpdates}. Cure: visitors only read ({@link Namespace.EntryVisitor}). A caller that
 *       changes what it lists, or asks the source about it, collects some entries first.
 *   <li>A thread that meets a failure holds {@code use} shared and needs it exclusive. Cure: {@link
 *       Database#within} passes the failure to the outermost call, which gives the lock back first.
 *   <li>One thread holds a lock of {@link RecentInodes} and loads an inode, another holds {@code
 *       use} and asks for that inode. Cure: {@link RocksNamespace#inode} takes {@code use} first.
 * </ol>
 *
 * <p><b>What may be forgotten</b>
 *
 * <ul>
 *   <li>Everything: the source has it. Only numbers that the kernel holds must not change.
 *   <li>Changes survive a killed daemon. Only the begin of a session and its clean stop are synced;
 *       after a power loss the state is that of an earlier moment.
 *   <li>A state that is damaged or of another format is renamed ({@code .damaged-N}, of which three
 *       stay, or {@code .newer-N}), and a new one begins. One of another dataset is refused.
 *   <li>A value of another version counts as absent, and a damaged inode as a damaged state.
 *   <li>{@link RecentInodes}, {@link Lineage} and the overlay end with the process.
 * </ul>
 *
 * <p><b>What names from outside are allowed to do.</b> A name may be any bytes. Those from other
 * nodes are checked by {@link FileName#isEntry} and {@link FileName#isBelow}, and whatever is shown
 * passes {@link PathText}, so that it controls no terminal. The hashes of {@link Lineage} have a
 * secret key.
 */
@NullMarked
package io.pmfs.metadata;

import org.jspecify.annotations.NullMarked;
