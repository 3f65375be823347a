package io.pmfs.shards;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import java.nio.ByteBuffer;

/** An open member: ranges of its shard, and zeros for its holes. */
final class MemberFile implements SourceFile {
  private static final int ZEROS = 4096;

  private final ShardMember member;
  private final SourceStatus status;
  private final OpenShards.OpenShard shard;
  private final SourceFile data;
  private boolean closed;

  /**
   * Opens a member.
   *
   * @param shard released when the member is closed
   * @param data the file from which the shard's bytes are read
   */
  MemberFile(ShardMember member, SourceStatus status, OpenShards.OpenShard shard, SourceFile data) {
    this.member = member;
    this.status = status;
    this.shard = shard;
    this.data = data;
  }

  @Override
  public int read(long offset, ByteBuffer destination) throws FsException {
    Extents extents = member.extents();
    int limit = destination.limit();
    int first = destination.position();
    long at = offset;
    try {
      while (at < member.size() && destination.position() < limit) {
        int index = extents.at(at);
        boolean hole = index == extents.count() || at < extents.offset(index);
        long end =
            hole
                ? index == extents.count() ? member.size() : extents.offset(index)
                : extents.offset(index) + extents.size(index);
        int count = (int) Math.min(limit - destination.position(), end - at);
        destination.limit(destination.position() + count);
        if (hole) {
          zeros(destination, count);
        } else {
          piece(member.data() + extents.stored(index, at), destination, count);
        }
        at += count;
      }
    } finally {
      destination.limit(limit);
    }
    return destination.position() - first;
  }

  private void piece(long offset, ByteBuffer destination, int count) throws FsException {
    if (data.read(offset, destination) < count) {
      shard.check(shard.file());
      throw new FsException(Errno.EIO, "the shard ends before the end of its member");
    }
  }

  private static void zeros(ByteBuffer destination, int count) {
    byte[] zeros = new byte[Math.min(count, ZEROS)];
    for (int left = count; left > 0; left -= zeros.length) {
      destination.put(zeros, 0, Math.min(left, zeros.length));
    }
  }

  @Override
  public long seekData(long offset) throws FsException {
    Extents extents = member.extents();
    int index = offset < 0 ? extents.count() : extents.at(offset);
    if (index == extents.count()) {
      throw new FsException(Errno.ENXIO, "no data at or after " + offset);
    }
    return Math.max(offset, extents.offset(index));
  }

  @Override
  public long seekHole(long offset) throws FsException {
    if (offset < 0 || offset >= member.size()) {
      throw new FsException(Errno.ENXIO, "no hole at or after " + offset);
    }
    Extents extents = member.extents();
    int index = extents.at(offset);
    boolean hole = index == extents.count() || offset < extents.offset(index);
    return hole ? offset : extents.offset(index) + extents.size(index);
  }

  /** The status as it was indexed; throws if the shard had changed when it was read. */
  @Override
  public SourceStatus status() throws FsException {
    shard.check(data);
    return status;
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      shard.release();
    }
  }
}
