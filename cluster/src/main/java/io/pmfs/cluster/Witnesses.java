package io.pmfs.cluster;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.cluster.members.Member;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceVersion;
import java.util.UUID;

/**
 * Which nodes have seen the versions of files. A version is trusted when two nodes have seen it:
 * the one that described the file, and the one that sends its content (docs/decisions/0055).
 * Thread-safe.
 */
final class Witnesses {
  /** This node. */
  static final UUID HERE = new UUID(0, 1);

  private static final UUID SEVERAL = new UUID(0, 0);

  /** Whether only this node describes files, because peers are not trusted with access rights. */
  private final boolean onlyHere;

  /** The node that described the files of a directory; {@link #SEVERAL} if several did. */
  private final Cache<FileName, UUID> describers =
      CacheBuilder.newBuilder().maximumSize(100_000).build();

  /** Versions that two nodes have seen, as far as remembered. */
  private final Cache<FileName, SourceVersion> witnessed =
      CacheBuilder.newBuilder().maximumSize(200_000).build();

  Witnesses(boolean onlyHere) {
    this.onlyHere = onlyHere;
  }

  /** Records that another node has described a file of a directory. */
  void described(FileName directory, UUID by) {
    describers.asMap().merge(directory, by, (known, now) -> known.equals(now) ? now : SEVERAL);
  }

  /** Records that this node has described a file of a directory that no other node describes. */
  void describedHere(FileName directory) {
    describers.asMap().putIfAbsent(directory, HERE);
  }

  /** Records that a node has described all files of a directory. */
  void listed(FileName directory, UUID by) {
    describers.put(directory, by);
  }

  boolean isDescribedHere(FileName path) {
    return onlyHere || HERE.equals(describers.getIfPresent(Paths.parent(path)));
  }

  /** Whether only the node that sends a file's content has seen its version. */
  boolean isOnlyWitness(Member giver, FileName path) {
    UUID describer = onlyHere ? HERE : describers.getIfPresent(Paths.parent(path));
    return describer == null || describer.equals(SEVERAL) || describer.equals(giver.id());
  }

  boolean isWitnessed(FileName path, SourceVersion version) {
    return version.equals(witnessed.getIfPresent(path));
  }

  /** Records that two nodes have seen a version. */
  void witnessed(FileName path, SourceVersion version) {
    witnessed.put(path, version);
  }
}
