package io.pmfs.pack;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The result of a pack.
 *
 * @param manifest null if the pack is not complete, because something could not be read
 * @param keptShards shards that an interrupted run had finished
 * @param unreadable files that are missing in the pack, or that keep it from being complete
 * @param sockets names that no tar file can contain
 */
public record PackResult(
    @Nullable PackManifest manifest,
    int keptShards,
    List<Unreadable> unreadable,
    List<String> sockets) {}
