package io.pmfs.shards;

import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.SourceAccess;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceSequence;
import io.pmfs.source.SourceStatus;
import io.pmfs.source.StoreStatistics;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The content of shards as the source of a dataset: names and attributes come from their index,
 * contents are ranges of the shards, which are files of another store. Reading a shard that changed
 * since it was indexed is an error, ESTALE, and never returns other bytes.
 */
public final class ShardStore implements BackingStore {
  private static final int OPEN_SHARDS = 64;

  private final BackingStore store;
  private final ShardIndex index;
  private final ShardFiles files;
  private final OpenShards open;
  private final ShardIdentities identities;

  /**
   * Serves shards by their index.
   *
   * @param store contains the shards; stays open
   * @param index closed with this store
   * @param memory for frames of compressed shards
   */
  public ShardStore(BackingStore store, ShardIndex index, DirectMemory memory) {
    this(store, index, memory, OPEN_SHARDS, System::nanoTime);
  }

  ShardStore(
      BackingStore store,
      ShardIndex index,
      DirectMemory memory,
      int openShards,
      LongSupplier nanoTime) {
    this.store = store;
    this.index = index;
    this.files = new ShardFiles(store, memory);
    this.open = new OpenShards(files, openShards, nanoTime);
    this.identities = new ShardIdentities(index.summary().form(), index.shards());
  }

  /**
   * Identifies the versions of the shards and how they are shown; changes if any of these changes.
   */
  public String fingerprint() {
    return index.fingerprint();
  }

  @Override
  public SourceStatus status(FileName path) throws FsException {
    return status(path, member(path));
  }

  private ShardMember member(FileName path) throws FsException {
    ShardMember member;
    try {
      member = index.member(path);
    } catch (IOException e) {
      throw damaged(e);
    }
    if (member == null) {
      throw new FsException(Errno.ENOENT, path.toString());
    }
    return member;
  }

  private SourceStatus status(FileName path, ShardMember member) throws FsException {
    try {
      return new SourceStatus(
          identities.of(path, member), member.attributes(index.linkCount(member)));
    } catch (IOException e) {
      throw damaged(e);
    }
  }

  @Override
  public void list(FileName directory, NameConsumer batches) throws FsException {
    if (!member(directory).isDirectory()) {
      throw new FsException(Errno.ENOTDIR, directory.toString());
    }
    try {
      index.list(directory, batches);
    } catch (IOException e) {
      throw damaged(e);
    }
  }

  @Override
  public FileName readSymbolicLink(FileName path) throws FsException {
    ShardMember member = member(path);
    if (FileType.ofMode(member.mode()) != FileType.SYMBOLIC_LINK) {
      throw new FsException(Errno.EINVAL, path.toString());
    }
    return member.target();
  }

  @Override
  public SourceFile open(FileName path) throws FsException {
    return open(path, null);
  }

  /**
   * Opens a member.
   *
   * @param data the bytes of its shard; null for the shard's file
   */
  SourceFile open(FileName path, @Nullable SourceFile data) throws FsException {
    ShardMember member = member(path);
    if (!member.isRegular()) {
      throw new FsException(member.isDirectory() ? Errno.EISDIR : Errno.EINVAL, path.toString());
    }
    SourceStatus status = status(path, member);
    OpenShards.OpenShard shard = open.acquire(index.shards().get(member.shard()));
    return new MemberFile(member, status, shard, data == null ? shard.file() : data);
  }

  /** No extended attributes of members are shown. */
  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) {
    return Map.of();
  }

  @Override
  public SourceAccess access(FileName path) throws FsException {
    return SourceAccess.withoutLists(status(path));
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    return store.statistics();
  }

  @Override
  public int sequenceCount() {
    return index.shards().size();
  }

  @Override
  public SourceSequence sequence(int number, ByteBuffer window, Runnable beforeRequest)
      throws FsException {
    OpenShards.OpenShard shard = open.acquire(index.shards().get(number));
    return new ShardSequence(this, shard, index.order(number), window, beforeRequest);
  }

  @Nullable FileName next(ShardIndex.Order order) throws FsException {
    try {
      return order.next();
    } catch (IOException e) {
      throw damaged(e);
    }
  }

  private static FsException damaged(IOException e) {
    return new FsException(
        Errno.EIO, "the index of the shards is damaged; unmount and mount again: " + e, e);
  }

  @Override
  public void close() {
    open.close();
    files.close();
    index.close();
  }
}
