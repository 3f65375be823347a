/**
 * Datasets in tar files, served without unpacking. A member is a range of its shard, so the index
 * is one table of ranges.
 */
@NullMarked
package io.pmfs.shards;

import org.jspecify.annotations.NullMarked;
