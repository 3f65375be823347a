package io.pmfs.stage;

import io.pmfs.memory.DirectMemory;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.ForwardingStore;
import io.pmfs.source.LentFile;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.copies.LentCopy;
import io.pmfs.stage.formats.LentFormats;
import io.pmfs.tier.OpenCopy;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * A source that takes content from whole copies made by other mounts of the dataset on this
 * machine, if they are certainly of the opened file and its requested version, and otherwise from
 * the wrapped source. Names, attributes and permissions always come from the source. Borrowed bytes
 * count only if they match their recorded checksums.
 */
public final class BorrowingStore extends ForwardingStore {
  private final Lenders lenders;
  private final LentFormats formats;
  private final LongAdder borrowed = new LongAdder();

  /**
   * Wraps a source.
   *
   * @param memory used to compare and decompress
   */
  public BorrowingStore(BackingStore source, Lenders lenders, DirectMemory memory) {
    super(source);
    this.lenders = lenders;
    this.formats = new LentFormats(memory);
  }

  /** Bytes read from copies of other mounts. */
  public long borrowedBytes() {
    return borrowed.sum();
  }

  @Override
  public SourceFile openVersion(FileName path, SourceVersion expected) throws FsException {
    return new BorrowingFile(super.openVersion(path, expected), path, expected);
  }

  @Override
  public void close() {
    super.close();
    formats.close();
  }

  private final class BorrowingFile extends ForwardingFile {
    private final FileName path;
    private final SourceVersion version;
    private boolean asked; // GUARDED_BY(this)
    private @Nullable OpenCopy copy; // GUARDED_BY(this)

    BorrowingFile(SourceFile file, FileName path, SourceVersion version) {
      super(file);
      this.path = path;
      this.version = version;
    }

    private synchronized @Nullable OpenCopy copy() {
      if (!asked) {
        asked = true;
        copy = borrow();
      }
      return copy;
    }

    /** An open copy of this file; null if no lender has one that can be opened. */
    private @Nullable OpenCopy borrow() {
      List<LentCopy> lent = lenders.find(path, version);
      SourceStatus now = lent.isEmpty() ? null : current();
      for (LentCopy one : lent) {
        try {
          if (now != null && one.isOf(now.identity(), now.attributes())) {
            return formats.open(one.tier(), one.inode(), one.record(), one.open());
          }
        } catch (IOException e) {
          // Removed meanwhile, in another mount namespace, or of a format that is not readable
          // here.
        }
      }
      return null;
    }

    private @Nullable SourceStatus current() {
      try {
        return status();
      } catch (FsException e) {
        // Reading fails too, and reports why.
        return null;
      }
    }

    @Override
    public int read(long offset, ByteBuffer destination) throws FsException {
      int first = destination.position();
      int count = (int) Math.min(destination.remaining(), version.size() - offset);
      OpenCopy lent = count <= 0 ? null : copy();
      if (lent != null) {
        try {
          lent.copyTo(offset, count, new Destination(destination));
          borrowed.add(count);
          return count;
        } catch (IOException e) {
          // The copy is damaged or its disk failed: read from the source.
        }
        destination.position(first);
      }
      return super.read(offset, destination);
    }

    /** What was copied on this machine is not read from the source. */
    @Override
    public @Nullable LentFile lend() {
      return copy() == null ? super.lend() : null;
    }

    @Override
    public synchronized void close() {
      asked = true;
      if (copy != null) {
        copy.close();
      }
      super.close();
    }
  }

  /** Fills a buffer from its position on. */
  private record Destination(ByteBuffer bytes) implements ReadSink {
    @Override
    public ByteBuffer buffer(int size) {
      return bytes.slice(bytes.position(), size);
    }

    @Override
    public void accept(ReadResult piece) throws IOException {
      if (piece instanceof ReadResult.Bytes) {
        bytes.position(bytes.position() + piece.size()); // decompressed in place
      } else {
        piece.copyTo(bytes);
      }
    }
  }
}
