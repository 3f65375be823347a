/**
 * The file system: takes inodes, returns attributes and bytes. Independent of the kernel's requests
 * and of the kinds of tiers.
 */
@NullMarked
package io.pmfs.fs;

import org.jspecify.annotations.NullMarked;
