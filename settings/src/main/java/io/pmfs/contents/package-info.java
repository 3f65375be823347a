/**
 * What pmfs keeps on this machine's disks, mounted or not: sets of copies, and the directories of
 * writable mounts.
 */
@NullMarked
package io.pmfs.contents;

import org.jspecify.annotations.NullMarked;
