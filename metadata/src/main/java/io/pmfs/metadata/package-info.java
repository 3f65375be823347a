/** The namespace of a dataset: names, inodes, and where copies of their contents are. */
@NullMarked
package io.pmfs.metadata;

import org.jspecify.annotations.NullMarked;
