/** System calls that Java lacks: on the source, on mapped memory, and for processes. */
@NullMarked
package io.pmfs.fuse.system;

import org.jspecify.annotations.NullMarked;
