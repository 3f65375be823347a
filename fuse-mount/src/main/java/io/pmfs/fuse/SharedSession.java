package io.pmfs.fuse;

import java.nio.file.Path;

/**
 * A connection to the kernel that outlives this process, because somebody else holds its descriptor
 * too.
 *
 * @param descriptor an open /dev/fuse
 * @param resumed whether it is mounted and negotiated already, by a process that is gone
 * @param ledger where to keep what the next process must know
 */
public record SharedSession(int descriptor, boolean resumed, Path ledger) {}
