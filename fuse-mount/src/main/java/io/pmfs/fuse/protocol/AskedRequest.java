package io.pmfs.fuse.protocol;

import io.pmfs.metadata.FileName;
import org.jspecify.annotations.Nullable;

/**
 * What a request from the kernel asks for.
 *
 * @param operation the FUSE name of the operation, in lower case
 * @param uid the caller's user; -1 if not known
 * @param gid the caller's group; -1 if not known
 * @param pid the number of the thread that asks, which for the first thread of a process is the
 *     process's number; 0 if the kernel asks for itself, -1 if not known
 * @param inode the inode in question; for a lookup, the directory; 0 if the bridge receives paths
 * @param path the same as a path below the root; null if the bridge receives inodes
 * @param name the name to look up, or the name of an extended attribute; null if there is none
 * @param offset in bytes, or in a listing; -1 if there is none
 * @param size the requested size in bytes; -1 if there is none
 * @param beginNanos when the daemon began the request, by {@link System#nanoTime}
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
