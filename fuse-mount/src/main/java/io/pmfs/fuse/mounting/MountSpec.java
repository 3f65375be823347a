package io.pmfs.fuse.mounting;

import java.nio.file.Path;
import java.time.Duration;

/**
 * How a file system is mounted.
 *
 * @param mountpoint an absolute path
 * @param source what mount(8) shows as the device
 * @param allowOther whether users other than the one who mounts have access, as far as the files'
 *     modes permit
 * @param timeout how long the kernel may keep names, attributes and their absence without asking
 *     again
 */
public record MountSpec(Path mountpoint, String source, boolean allowOther, Duration timeout) {}
