/** Datasets written as tar files with an index: what a shard holds, and writing and checking it. */
@NullMarked
package io.pmfs.pack;

import org.jspecify.annotations.NullMarked;
