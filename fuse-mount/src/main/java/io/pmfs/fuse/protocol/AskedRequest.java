package io.pmfs.fuse.protocol;

import io.pmfs.metadata.FileName;
import org.jspecify.annotations.Nullable;

/**
 * The parameters of a request from the kernel.
 *
 * @param operation the FUSE name of the operation, in lower case
 * @param uid the caller's user; -1 if unknown
 * @param gid the caller's group; -1 if unknown
 * @param pid the thread id of the caller, which for a process's first thread is the process id; 0
 *     for a request of the kernel itself, -1 if unknown
 * @param inode the inode in question; for a lookup, the directory; 0 if the bridge receives paths
 * @param path the path below the root; null if the bridge receives inodes
 * @param name the name to look up, or the name of an extended attribute; null if there is none
 * @param offset in bytes, or in a listing; -1 if there is none
 * @param size the requested size in bytes; -1 if there is none
 * @param beginNanos when the daemon started the request, by {@link System#nanoTime}
 */
public record AskedRequest(
    String operation,
    long uid,
    long gid,
    long pid,
    long inode,
    @Nullable FileName path,
    @Nullable FileName name,
    long offset,
    long size,
    long beginNanos) {}
