/** Codecs, which compress and decompress bytes. */
@NullMarked
package io.pmfs.compression;

import org.jspecify.annotations.NullMarked;
