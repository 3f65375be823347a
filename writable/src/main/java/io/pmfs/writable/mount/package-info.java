/** A writable mount as a whole: its parts put together, and the sessions of the kernel with it. */
@NullMarked
package io.pmfs.writable.mount;

import org.jspecify.annotations.NullMarked;
