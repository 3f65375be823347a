package io.pmfs.fuse;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * A connection to the kernel that outlives this process, because somebody else holds its descriptor
 * too.
 *
 * @param descriptor an open /dev/fuse
 * @param resumed whether it is mounted and negotiated already, by a process that is gone
 * @param ledger where to keep what the next process must know
 * @param device the number of the mount, as mountinfo has it, if it is mounted and that is known
 * @param mounter who mounts for this process; null if it may itself
 */
public record SharedSession(
    int descriptor,
    boolean resumed,
    Path ledger,
    @Nullable String device,
    @Nullable Mounter mounter) {}
