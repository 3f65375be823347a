/** Mounts that can be changed: outputs are written to a tier and copied to the source in order. */
@NullMarked
package io.pmfs.writable;

import org.jspecify.annotations.NullMarked;
