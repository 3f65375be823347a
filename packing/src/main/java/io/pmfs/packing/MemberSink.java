package io.pmfs.packing;

import io.pmfs.metadata.FileName;

/** Takes what a scan of a shard finds, in the order of the shard. */
interface MemberSink {
  void member(FileName path, Member member) throws ShardException;

  void warn(Warning warning, String where);

  /** Says how much further the scan is. */
  void passed(long bytes) throws ShardException;
}
