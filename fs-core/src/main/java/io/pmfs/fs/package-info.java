/**
 * The file system: takes inodes, returns attributes and bytes. Knows neither the kernel's protocol
 * nor the kinds of tiers.
 */
@NullMarked
package io.pmfs.fs;

import org.jspecify.annotations.NullMarked;
