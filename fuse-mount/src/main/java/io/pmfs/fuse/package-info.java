/**
 * The boundary to the kernel: bridges that pass the kernel's requests to the file system, and the
 * system calls that read the source.
 *
 * <p><b>Start reading</b> at {@link Bridge}. {@link KernelBridge} speaks the kernel's protocol:
 * {@link KernelWorkers} are its threads, {@link KernelWorker} fetches and answers, {@link
 * KernelOperations} executes requests, or {@link WritableOperations} if files can be changed,
 * {@link Negotiation} agrees on features with the kernel, and {@link BackingFiles} are the files
 * that the kernel reads without the daemon. A {@link BridgeProvider} of another module does the
 * same over libfuse 2. {@link io.pmfs.fuse.mounting.Mounting Mounting} has the three ways to mount.
 * {@link io.pmfs.fuse.system.DirectoryStore DirectoryStore} reads the source; {@link
 * io.pmfs.fuse.system.LinuxDaxFiles LinuxDaxFiles} and {@link io.pmfs.fuse.system.PoolFile
 * PoolFile} map persistent memory.
 *
 * <p><b>Threads</b>
 *
 * <ul>
 *   <li>{@code fuse-1} negotiates, unless it continues a session, and starts {@code fuse-2} and so
 *       on, as many as were configured. They end with the session; the last one closes the device.
 *       The mount ends without those that then still work on a request that may be ended early.
 *       After a hand-over they wait, in the kernel or in the {@link RequestGate}, until the process
 *       ends, or they end (deadlock 4).
 *   <li>{@code fuse-relief} and {@code fuse-more-33} and so on, in writable mounts: while workers
 *       wait, {@link Relief} adds others, which end when they are no longer needed.
 *   <li>{@code fuse-killed}, in read-only mounts: {@link KilledPrograms}.
 *   <li>{@code probe}, once for a new mount: waits until the daemon answers.
 *   <li>{@code fusermount}, until that program has ended; {@code last-requests}, during a hand-over
 *       to another process if the kernel cannot resend requests.
 *   <li>{@link io.pmfs.fuse.mounting.StaleMountGuard StaleMountGuard} is a process. It survives the
 *       daemon.
 * </ul>
 *
 * <p><b>Lock order</b>, outermost first. A lock without a name is the monitor of its object; locks
 * that are not named are innermost.
 *
 * <pre>{@code
 * locks of the file system (a name is compared, a copy is dropped) < BackingFiles < BackingLedger
 * ReadModeChoice < a tier's lock
 * }</pre>
 *
 * <ul>
 *   <li>{@link BackingFiles} calls neither the file system nor the kernel while holding its lock,
 *       because threads with locks of the file system call it to report removed copies. It calls
 *       only the ledger, which may write its file.
 *   <li>{@link ReadModeChoice} asks the tiers for their counts while holding its lock, so in read
 *       mode {@code auto} an open may wait for a tier that is removing a file.
 * </ul>
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>To drop cached pages or names (FUSE_NOTIFY_INVAL_INODE, FUSE_NOTIFY_INVAL_ENTRY) the kernel
 *       takes locks that it also holds while waiting for an answer. Cure: such notices are not
 *       sent. FUSE_NOTIFY_RESEND, and FUSE_NOTIFY_INVAL_INODE for attributes alone, take no such
 *       lock; a worker sends them before it answers.
 *   <li>A thread of the daemon that waits for its own mount cannot be killed once a worker has
 *       taken its request, except by {@link KilledPrograms}. If the daemon then stops answering, it
 *       never ends, and no other daemon starts. Cure: a child process requests the heartbeat,
 *       {@link KernelBridge} does not probe a session that it continues, and {@code probe} enters a
 *       new mount only. {@code last-requests} enters the mount too, but workers answer all requests
 *       that they take from it.
 *   <li>Reads wait for a source that hangs on every worker, and {@code stat} waits behind them.
 *       Cure: {@link KernelBridge} reserves eight workers from read-ahead, and sets a congestion
 *       threshold that the kernel never reaches ({@link Negotiation}). Writes and syncs are not
 *       read-ahead: {@link Relief} adds workers while requests wait, up to 128.
 *   <li>A daemon takes a request and hands over or dies: its reader waits forever. Cure: the kernel
 *       resends unanswered requests. If it cannot, each worker has its own descriptor, so that the
 *       kernel fails such requests when the process ends ({@link KernelWorkers}), and a hand-over
 *       closes the {@link RequestGate} instead of shutting it: each worker answers one more
 *       request.
 *   <li>Readers wait for a request that cannot be answered, or for a session from which no worker
 *       can fetch. Cure: {@link KernelWorker} reports the failure, and the bridge leaves the
 *       session to another process or aborts it.
 * </ol>
 *
 * <p><b>What may be forgotten.</b>
 *
 * <ul>
 *   <li>The namespace keeps what node numbers consist of ({@link NodeNumber}), so FORGET needs no
 *       bookkeeping. {@link WritableOperations} forwards it, which frees unlinked files.
 *   <li>The kernel is authoritative for open files. Ids and counts of files that are open in
 *       passthrough must not be lost: the INVARIANT of {@link BackingFiles}. {@link BackingLedger}
 *       passes them to the next daemon. Registrations that are not open may be dropped at any time.
 *   <li>Page-cache mode cannot be undone: see {@link ReadModeChoice}, whose counts may be lost.
 *   <li>The device number identifies the mount, the path does not: {@link
 *       io.pmfs.fuse.mounting.SessionMount SessionMount}.
 * </ul>
 */
@NullMarked
package io.pmfs.fuse;

import org.jspecify.annotations.NullMarked;
