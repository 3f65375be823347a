/**
 * The file system: inodes in, attributes and bytes out. Knows neither the kernel's requests nor
 * which tiers there are.
 */
@NullMarked
package io.pmfs.fs;

import org.jspecify.annotations.NullMarked;
