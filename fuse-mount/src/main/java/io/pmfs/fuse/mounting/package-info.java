/** Mounting and unmounting: by root, for a supervisor that keeps the mount, and by fusermount. */
@NullMarked
package io.pmfs.fuse.mounting;

import org.jspecify.annotations.NullMarked;
