package io.pmfs.shards;

/**
 * Summarises an index.
 *
 * @param members the number of names, including directories of members that no shard lists
 * @param warnings how many members are not served unchanged
 */
public record IndexSummary(IndexForm form, int shards, long members, long warnings) {}
