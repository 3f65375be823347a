package io.pmfs.packing;

/**
 * What an index has.
 *
 * @param members names, directories included that no shard has but that members lie in
 * @param warnings how much is not served as the shards have it
 */
public record IndexSummary(IndexForm form, int shards, long members, long warnings) {}
