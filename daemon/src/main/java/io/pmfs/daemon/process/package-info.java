/**
 * The process of a daemon and its machine: log, version, supervisor, requirements of FUSE, and the
 * time limit for a new mount.
 *
 * <p><b>Start reading</b> at {@link Supervision}, the link to the supervisor that started this
 * process: a descriptor of /dev/fuse that both hold, and the session file. {@link Readiness} is the
 * time limit for joining a cluster and mounting. {@link MachineChecks} reports what is missing, and
 * {@link BridgeChoice} selects the bridge. {@link BindMount} and {@link ExternalUnmount} bind and
 * unmount sessions of other processes. {@link PrivateNamespace} detects that the daemon is alone in
 * its mount namespace.
 *
 * <p><b>The log.</b> Commands are silent ({@link SilentLog}) until {@link DaemonLog} starts. {@link
 * LogText} makes each message one line, and {@link RecentLog} keeps the latest warnings for users
 * without access to the file.
 *
 * <p><b>Threads.</b> The package starts none, and its only lock is that of the lines in {@link
 * RecentLog}. {@link Supervision} waits for the supervisor without a limit, {@link ExternalUnmount}
 * up to 20 s for fusermount.
 *
 * <p><b>What survives.</b> While the session file names a read mode and a mount point, the session
 * continues: the supervisor starts another daemon if this one dies. The file is replaced by rename,
 * because an empty one means the end of the session; its modification time is the heartbeat. Beside
 * it are the settings, the ledger of files open in passthrough, and the bound of the inode numbers.
 *
 * <p><b>What others are allowed to do.</b> A log file, and a directory of logs, must be this user's
 * or root's alone. {@code PathText} encodes names in messages. A mount is unmounted only if its
 * device number and type are still the expected ones. libfuse 2 mounts by path, so root uses it
 * only on a path that no other user can change.
 */
@NullMarked
package io.pmfs.daemon.process;

import org.jspecify.annotations.NullMarked;
