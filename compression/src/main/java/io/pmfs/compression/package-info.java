/** Codecs: bytes in, bytes out. */
@NullMarked
package io.pmfs.compression;

import org.jspecify.annotations.NullMarked;
