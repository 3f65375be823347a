/** The namespace of a dataset: names, inodes, and where copies of their contents lie. */
@NullMarked
package io.pmfs.metadata;

import org.jspecify.annotations.NullMarked;
