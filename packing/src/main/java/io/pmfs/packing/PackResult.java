package io.pmfs.packing;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What came of a pack.
 *
 * @param manifest null if it is not complete, because something could not be read
 * @param keptShards shards that an interrupted run had finished
 * @param unreadable what is missing in it, or keeps it from being complete
 * @param sockets names that no tar file can hold
 */
public record PackResult(
    @Nullable PackManifest manifest,
    int keptShards,
    List<Unreadable> unreadable,
    List<String> sockets) {}
