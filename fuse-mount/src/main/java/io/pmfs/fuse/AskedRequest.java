package io.pmfs.fuse;

import io.pmfs.metadata.FileName;
import org.jspecify.annotations.Nullable;

/**
 * What a request of the kernel asks for.
 *
 * @param operation as FUSE calls it, in lower case
 * @param uid who asked; -1 if that is not known
 * @param gid with which group; -1 if that is not known
 * @param pid by which thread, whose number in its process's first thread is the process's; 0 if the
 *     kernel asked by itself, -1 if that is not known
 * @param inode what it was about: the directory, of a name that is looked up; 0 if the bridge is
 *     told paths
 * @param path the same below the root; null if the bridge is told inodes
 * @param name that is looked up, or of an extended attribute; null if there is none
 * @param offset in bytes, or in a listing; -1 if there is none
 * @param size that was asked for, in bytes; -1 if there is none
 * @param beginNanos when it was begun, by {@link System#nanoTime}
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
