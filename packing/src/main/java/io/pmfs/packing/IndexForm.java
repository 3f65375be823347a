package io.pmfs.packing;

/**
 * How shards are shown.
 *
 * @param merged whether the members of all shards lie together at the root, a later shard's in
 *     place of an earlier's; if not, each shard is a directory of its own
 * @param nested whether a member that is a tar file itself is shown as a directory
 */
public record IndexForm(boolean merged, boolean nested) {}
