package io.pmfs.fuse.mounting;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * A connection to the kernel that outlives this process, because another process also holds its
 * descriptor.
 *
 * @param descriptor an open /dev/fuse
 * @param resumed whether an earlier process mounted and negotiated it
 * @param ledger the file that records open backing files for the next process
 * @param device the device number of the mount, as in mountinfo; null if not mounted or unknown
 * @param mounter mounts for this process; null if it may mount itself
 */
public record SharedSession(
    int descriptor,
    boolean resumed,
    Path ledger,
    @Nullable String device,
    @Nullable Mounter mounter) {}
