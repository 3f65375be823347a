package io.pmfs.shards;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceSequence;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** The files of one shard in the order of their positions, read with large requests. */
final class ShardSequence implements SourceSequence {
  private final ShardStore store;
  private final OpenShards.OpenShard shard;
  private final ShardIndex.Order order;
  private final ReadWindow window;
  private @Nullable FileName current;
  private boolean closed;

  ShardSequence(
      ShardStore store,
      OpenShards.OpenShard shard,
      ShardIndex.Order order,
      ByteBuffer window,
      Runnable beforeRequest) {
    this.store = store;
    this.shard = shard;
    this.order = order;
    this.window = new ReadWindow(shard.file(), window, beforeRequest);
  }

  @Override
  public @Nullable FileName next() throws FsException {
    FileName next = store.next(order);
    current = next;
    return next;
  }

  @Override
  public SourceFile open() throws FsException {
    FileName path = current;
    if (path == null) {
      throw new IllegalStateException("no file was named");
    }
    return store.open(path, window);
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      order.close();
      shard.release();
    }
  }
}
