package io.pmfs.shards;

import io.pmfs.metadata.FileName;

/** Receives the results of a scan of a shard, in the order of the shard. */
interface MemberSink {
  void member(FileName path, ShardMember member) throws ShardException;

  void warn(Warning warning, String where);

  /** Reports how many more bytes were scanned. */
  void passed(long bytes) throws ShardException;
}
