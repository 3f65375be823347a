package io.pmfs.shards;

import com.google.common.hash.HashFunction;
import com.google.common.hash.Hasher;
import com.google.common.hash.Hashing;
import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import java.util.List;

/**
 * The identities of members. A file has a new identity in each version of its shard, so that copies
 * from a changed shard are not used. The same holds for a directory, so that it is listed again. If
 * the members of all shards are shown together, a change of any shard gives all directories new
 * identities.
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

  /** All names of one file share one identity, which no other file of the shard has. */
  FileIdentity of(FileName path, ShardMember member) {
    if (!member.isDirectory()) {
      // Multiplication by an odd factor is a permutation: no two positions of a shard collide.
      return new FileIdentity(
          -2L - member.shard(),
          versions[member.shard()] ^ (member.position() * 0x9e3779b97f4a7c15L));
    }
    long scope = merged || path.size() == 0 ? allVersions : versions[member.shard()];
    return new FileIdentity(
        -1, HASH.newHasher().putLong(scope).putBytes(path.bytes()).hash().asLong());
  }
}
