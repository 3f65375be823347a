package io.pmfs.shards;

/**
 * How shards are shown.
 *
 * @param merged whether the members of all shards are shown together at the root, where later
 *     shards replace members of earlier ones; if not, each shard is a separate directory
 * @param nested whether a member that is itself a tar file is shown as a directory
 */
public record IndexForm(boolean merged, boolean nested) {}
