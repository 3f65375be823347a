package io.pmfs.cluster;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.stage.formats.Blocks;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * Remembers which nodes copied large files from this one, so that other nodes may read from them. A
 * hint may be wrong: a node that follows it asks for copies only. Takes a few MiB at most.
 * Thread-safe.
 */
final class HolderHints {
  /** Below this size, one node sends a file faster than several can be asked. */
  static final long LARGE_BYTES = 16 << 20;

  /** Limit of nodes in one answer. The answers differ, so that all nodes are asked. */
  static final int MAX_NAMED = 7;

  private static final int MAX_FILES = 2048;
  private static final int MAX_NODES = 64;
  private static final int MAX_HANDOUTS = 64;

  private final Cache<Key, Set<UUID>> readers =
      CacheBuilder.newBuilder().maximumSize(MAX_FILES).build();

  /** Handouts of files that several nodes are reading. */
  private final Cache<Key, Handout> handouts =
      CacheBuilder.newBuilder().maximumSize(MAX_HANDOUTS).build();

  private record Key(FileName path, SourceVersion version) {}

  Handout handout(FileName path, SourceVersion version) {
    return handouts
        .asMap()
        .computeIfAbsent(
            new Key(path, version), key -> new Handout(Blocks.count(version), System::nanoTime));
  }

  /** Records that a range of a file was sent to a node. */
  void sent(FileName path, SourceVersion version, long offset, int size) {
    if (version.size() >= LARGE_BYTES) {
      Handout handout = handouts.getIfPresent(new Key(path, version));
      if (handout != null && size > 0) {
        handout.sent(Math.toIntExact(offset / Blocks.SIZE));
      }
    }
  }

  /**
   * Some nodes that may have a copy, in random order; empty if the file is not large.
   *
   * @param asker the node that is reading the file and will be named to others; null if it keeps no
   *     copy
   */
  List<UUID> others(FileName path, SourceVersion version, @Nullable UUID asker) {
    if (version.size() < LARGE_BYTES) {
      return List.of();
    }
    Key key = new Key(path, version);
    Set<UUID> known = readers.getIfPresent(key);
    if (known == null) {
      if (asker == null) {
        return List.of();
      }
      known = readers.asMap().computeIfAbsent(key, k -> new LinkedHashSet<>());
    }
    List<UUID> others;
    synchronized (known) {
      others = new ArrayList<>(known);
      if (asker != null && known.add(asker) && known.size() > MAX_NODES) {
        known.remove(known.iterator().next());
      }
    }
    others.remove(asker);
    Collections.shuffle(others);
    return List.copyOf(others.subList(0, Math.min(MAX_NAMED, others.size())));
  }
}
