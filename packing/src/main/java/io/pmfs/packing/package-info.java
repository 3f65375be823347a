/**
 * Datasets that lie in tar files: written as shards with an index, and served without unpacking. A
 * member of a shard is a range of it, so everything here comes down to one table of ranges.
 */
@NullMarked
package io.pmfs.packing;

import org.jspecify.annotations.NullMarked;
