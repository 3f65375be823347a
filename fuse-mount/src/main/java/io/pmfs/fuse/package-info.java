/**
 * The boundary to the kernel: bridges that pass the kernel's requests to the file system, and the
 * system calls that read the source.
 */
@NullMarked
package io.pmfs.fuse;

import org.jspecify.annotations.NullMarked;
