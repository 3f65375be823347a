/**
 * The kernel boundary: bridges that bring the kernel's requests to the file system, and the system
 * calls on the source.
 */
@NullMarked
package io.pmfs.fuse;

import org.jspecify.annotations.NullMarked;
