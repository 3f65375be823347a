/** The kernel's FUSE protocol: requests and replies as bytes, and how long requests took. */
@NullMarked
package io.pmfs.fuse.protocol;

import org.jspecify.annotations.NullMarked;
