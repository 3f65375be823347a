package io.pmfs.tier;

import io.pmfs.memory.ReadResult;
import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * An unfinished copy in a {@link DirectoryTier}: a file, or nothing until it is written as a whole
 * to a bundle. Thread-safe.
 */
final class IncomingFile implements CopyWriter {
  private final DirectoryTier tier;
  private final CopyFiles files;
  private final Bundles bundles;
  private final Room room;
  private final long number;
  private final Path path;

  // LOCK ORDER: IncomingFile < DirectoryTier.
  private long charge; // GUARDED_BY(this); reserved but not settled
  private @Nullable FileChannel file; // GUARDED_BY(this)
  private @Nullable Extent extent; // GUARDED_BY(this)
  private @Nullable CopyReader bundled; // GUARDED_BY(this)
  private boolean committed; // GUARDED_BY(this)
  private boolean closed; // GUARDED_BY(this)

  /**
   * Starts an empty copy.
   *
   * @param charge what was reserved in the room; the copy now owns the reservation
   */
  IncomingFile(
      DirectoryTier tier, CopyFiles files, Bundles bundles, Room room, long number, long charge) {
    this.tier = tier;
    this.files = files;
    this.bundles = bundles;
    this.room = room;
    this.number = number;
    this.charge = charge;
    this.path = files.newPath(number);
  }

  @Override
  public Tier tier() {
    return tier;
  }

  @Override
  public void allocate(long sizeBytes) throws IOException {
    if (sizeBytes < OpenFile.HUGE_PAGE_BYTES) {
      return;
    }
    try {
      tier.allocate(channel(), sizeBytes);
    } catch (IOException e) {
      tier.failed(e);
      throw e;
    }
  }

  @Override
  public void write(long offset, ByteBuffer source) throws IOException {
    try {
      CopyFiles.writeAll(channel(), source, offset);
    } catch (IOException e) {
      tier.failed(e);
      throw e;
    }
  }

  @Override
  public synchronized void append(ByteBuffer source) throws IOException {
    checkOpen();
    try {
      Extent appended = bundles.append(source, charge);
      if (appended == null) {
        throw new IOException("no room for another bundle");
      }
      extent = appended;
      charge = 0;
    } catch (IOException e) {
      tier.failed(e);
      throw e;
    }
  }

  @Override
  public ReadResult read(long offset, int size) throws IOException {
    CopyReader reader = bundled();
    return reader == null
        ? new ReadResult.FileRange(channel(), offset, size)
        : reader.read(offset, size);
  }

  private synchronized @Nullable CopyReader bundled() throws IOException {
    checkOpen();
    if (extent != null && bundled == null) {
      bundled = bundles.open(extent);
    }
    return bundled;
  }

  private synchronized void checkOpen() throws IOException {
    if (closed) {
      throw new IOException("the copy was closed");
    }
  }

  private synchronized FileChannel channel() throws IOException {
    checkOpen();
    FileChannel channel = file;
    if (channel == null) {
      channel = files.create(path);
      file = channel;
    }
    return channel;
  }

  @Override
  public synchronized void shrink(long sizeBytes) {
    long surplus = charge - Room.charge(sizeBytes);
    if (surplus > 0 && !closed && !committed) {
      charge -= surplus;
      room.release(surplus);
    }
  }

  @Override
  public synchronized @Nullable Extent commit() throws IOException {
    if (extent == null) {
      try {
        tier.put(channel(), path, number, charge);
      } catch (IOException e) {
        tier.failed(e);
        throw e;
      }
    } else {
      checkOpen();
      tier.countOneMore();
    }
    committed = true;
    return extent;
  }

  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    if (bundled != null) {
      bundled.close();
    }
    if (file != null) {
      CopyFiles.closeQuietly(file);
    }
    if (!committed) {
      discard();
    }
  }

  private void discard() { // GUARDED_BY(this)
    room.release(charge);
    if (extent != null) {
      bundles.drop(extent);
    }
    if (file == null) {
      return;
    }
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      tier.failed(e);
    }
  }
}
