package io.pmfs.packing;

import com.google.common.hash.HashFunction;
import com.google.common.hash.Hasher;
import com.google.common.hash.Hashing;
import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import java.util.List;

/**
 * Which files members are, for those who keep copies of them. A file is another one when its shard
 * is of another version, so that nothing is kept of a shard that changed; a directory too, so that
 * it is listed again. Where the members of all shards lie together, any of them may have changed
 * it.
 */
final class ShardIdentities {
  private static final HashFunction HASH = Hashing.murmur3_128();

  private final boolean merged;
  private final long[] versions;
  private final long allVersions;

  ShardIdentities(IndexForm form, List<Shard> shards) {
    merged = form.merged();
    versions = new long[shards.size()];
    Hasher all = HASH.newHasher();
    for (Shard shard : shards) {
      long version = version(shard);
      versions[shard.number()] = version;
      all.putLong(version);
    }
    allVersions = all.hash().asLong();
  }

  private static long version(Shard shard) {
    return HASH.newHasher()
        .putLong(shard.size())
        .putUnencodedChars(shard.modificationTime().toString())
        .putBytes(shard.name().bytes())
        .hash()
        .asLong();
  }

  /** Several names of one file have one identity, which it shares with no other of the shard. */
  FileIdentity of(FileName path, Member member) {
    if (!member.isDirectory()) {
      // Odd factors permute: no two positions of a shard meet.
      return new FileIdentity(
          member.shard() + 1L,
          versions[member.shard()] ^ (member.position() * 0x9e3779b97f4a7c15L));
    }
    long scope = merged || path.size() == 0 ? allVersions : versions[member.shard()];
    return new FileIdentity(
        0, HASH.newHasher().putLong(scope).putBytes(path.bytes()).hash().asLong());
  }
}
