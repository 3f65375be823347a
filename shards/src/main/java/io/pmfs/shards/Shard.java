package io.pmfs.shards;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import java.time.Instant;

/** A tar file of a dataset, and the version of it that was indexed. */
record Shard(int number, FileName name, long size, Instant modificationTime, int uid, int gid) {

  static Shard of(int number, FileName name, Attributes attributes) {
    return new Shard(
        number,
        name,
        attributes.size(),
        attributes.modificationTime(),
        attributes.uid(),
        attributes.gid());
  }

  boolean isSameVersion(Shard other) {
    return name.equals(other.name)
        && size == other.size
        && modificationTime.equals(other.modificationTime);
  }

  /** Whether a file is still the version that was indexed. */
  boolean isVersion(Attributes now) {
    return now.size() == size && now.modificationTime().equals(modificationTime);
  }
}
