package io.pmfs.pack;

import com.google.common.hash.Hashing;
import io.pmfs.metadata.Attributes;
import java.time.Instant;

/** 64 bits that change with any attribute that a shard stores for a file. */
final class Fingerprint {
  private Fingerprint() {}

  static long of(Attributes attributes) {
    Instant time = attributes.modificationTime();
    return Hashing.murmur3_128()
        .newHasher(48)
        .putInt(attributes.mode())
        .putInt(attributes.uid())
        .putInt(attributes.gid())
        .putLong(attributes.device())
        .putLong(attributes.size())
        .putLong(time.getEpochSecond())
        .putInt(time.getNano())
        .hash()
        .asLong();
  }
}
