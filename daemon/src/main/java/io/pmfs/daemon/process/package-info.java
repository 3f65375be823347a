/**
 * The process of a daemon and its machine: its log, its version, its supervisor, what FUSE needs,
 * and the time in which a mount must be ready.
 *
 * <p><b>Start reading</b> at {@link Supervision}, the link to the supervisor that started this
 * process: a descriptor of /dev/fuse that both hold, and the session file. {@link Readiness} is the
 * time that joining a cluster and the first look through the mount share. {@link MachineChecks}
 * says what is missing, and {@link BridgeChoice} which bridge is used. {@link BindMount} and {@link
 * ExternalUnmount} show and unmount sessions of other processes. {@link PrivateNamespace} notices
 * that nobody else is left in the daemon's mount namespace.
 *
 * <p><b>The log.</b> Commands are silent ({@link SilentLog}) until {@link DaemonLog} starts. {@link
 * LogText} makes each message one line, and {@link RecentLog} keeps the last warnings for readers
 * who have no access to the file.
 *
 * <p><b>Threads.</b> The package starts none, and its only lock is that of the lines in {@link
 * RecentLog}. {@link Supervision} and {@link ExternalUnmount} wait for another process: for the
 * supervisor without a limit, for fusermount 20 s.
 *
 * <p><b>What survives.</b> While the session file names a read mode and a mount point, the session
 * continues: the supervisor starts another daemon if this one dies. The file is replaced by a
 * rename, because an empty one would be the end of the session; its modification time is the
 * heartbeat. Beside it lie the settings, the ledger of files open in passthrough, and the bound of
 * the inode numbers.
 *
 * <p><b>What others are allowed to do.</b> A log file, and a directory of logs, must be this user's
 * or root's alone. Names in messages are shown by {@code PathText}. A mount is unmounted only if it
 * is still the one that was meant: by its device number and its type. libfuse 2 mounts by name, so
 * root uses it only on a path that nobody else can change.
 */
@NullMarked
package io.pmfs.daemon.process;

import org.jspecify.annotations.NullMarked;
