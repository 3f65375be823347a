package io.pmfs.tier;

import io.pmfs.memory.ReadResult;
import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** Wraps a tier, and makes it fail as a test requests. */
public final class FaultyTier implements Tier {
  /** The steps that may fail. */
  public enum Point {
    OPEN,
    HAS,
    CREATE,
    READ,
    WRITE,
    COMMIT,
    MOVE,
    /** Of a writer; it cannot fail, but may block. */
    CLOSE
  }

  /** What happens at a step. */
  public enum Fault {
    NONE,
    /** An IOException; from CREATE, no room. */
    FAIL,
    /** The file ends early; a copy being opened is missing. */
    SHORT,
    /** A byte is changed; the file of a copy being opened is gone. */
    CORRUPT,
    /** The disk is full; for WRITE. */
    FULL
  }

  /** Called before each step, without locks; may block. */
  @FunctionalInterface
  public interface Faults {
    Fault at(Point point, long number) throws IOException;
  }

  private final Tier tier;
  private final AtomicInteger openWriters = new AtomicInteger();
  private volatile Faults faults = (point, number) -> Fault.NONE;

  public FaultyTier(Tier tier) {
    this.tier = tier;
  }

  public void faults(Faults next) {
    faults = next;
  }

  public void clearFaults() {
    faults = (point, number) -> Fault.NONE;
  }

  /** Makes every step of a kind fail. */
  public void failAt(Point failing) {
    faults = (point, number) -> point == failing ? Fault.FAIL : Fault.NONE;
  }

  /** How many copies are unfinished, including abandoned ones. */
  public int openWriters() {
    return openWriters.get();
  }

  private Fault step(Point point, long number) throws IOException {
    Fault fault = faults.at(point, number);
    if (fault == Fault.FAIL && point != Point.CREATE) {
      throw new IOException("injected at " + point);
    }
    return fault;
  }

  @Override
  public String name() {
    return tier.name();
  }

  @Override
  public @Nullable CopyReader open(long number, @Nullable Extent extent) throws IOException {
    Fault fault;
    try {
      fault = step(Point.OPEN, number);
    } catch (IOException e) {
      tier.fail(String.valueOf(e.getMessage()));
      throw e;
    }
    if (fault == Fault.SHORT) {
      return null;
    }
    if (fault == Fault.CORRUPT) {
      if (extent != null) {
        return null;
      }
      tier.census().discard(number);
    }
    CopyReader reader = tier.open(number, extent);
    return reader == null ? null : new FaultyReader(number, reader);
  }

  @Override
  public @Nullable Path file(long number) {
    return tier.file(number);
  }

  @Override
  public @Nullable Linked link(long number, Lent lent) {
    return tier.link(number, lent);
  }

  private final class FaultyReader implements CopyReader {
    private final long number;
    private final CopyReader reader;

    FaultyReader(long number, CopyReader reader) {
      this.number = number;
      this.reader = reader;
    }

    @Override
    public long size() {
      return reader.size();
    }

    @Override
    public ReadResult read(long offset, int size) {
      ReadResult result = reader.read(offset, size);
      return faulty(number, result);
    }

    @Override
    public void close() {
      reader.close();
    }
  }

  private ReadResult faulty(long number, ReadResult result) {
    try {
      return switch (step(Point.READ, number)) {
        case SHORT -> new ReadResult.FileRange(new BadFile(null), 0, result.size());
        case CORRUPT -> corrupted(result);
        default -> result;
      };
    } catch (IOException e) {
      return new ReadResult.FileRange(new BadFile(e), 0, result.size());
    }
  }

  private static ReadResult corrupted(ReadResult result) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(result.size());
    result.copyTo(bytes);
    bytes.flip();
    bytes.put(0, (byte) (bytes.get(0) ^ 0x10));
    return new ReadResult.Bytes(bytes);
  }

  @Override
  public @Nullable CopyWriter create(long number, long sizeBytes) {
    try {
      if (step(Point.CREATE, number) != Fault.NONE) {
        return null;
      }
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    CopyWriter writer = tier.create(number, sizeBytes);
    return writer == null ? null : new FaultyWriter(number, writer);
  }

  private final class FaultyWriter implements CopyWriter {
    private final long number;
    private final CopyWriter writer;
    private final AtomicBoolean open = new AtomicBoolean(true);

    FaultyWriter(long number, CopyWriter writer) {
      this.number = number;
      this.writer = writer;
      openWriters.incrementAndGet();
    }

    /** Returns the wrapper: copies are recorded for the tier that is in the list. */
    @Override
    public Tier tier() {
      return FaultyTier.this;
    }

    @Override
    public void write(long offset, ByteBuffer source) throws IOException {
      writer.write(offset, faultyCopy(source));
    }

    @Override
    public void append(ByteBuffer source) throws IOException {
      writer.append(faultyCopy(source));
    }

    private ByteBuffer faultyCopy(ByteBuffer source) throws IOException {
      Fault fault = failing(Point.WRITE);
      if (fault == Fault.FULL) {
        IOException full = new IOException("No space left on device");
        tier.failed(full);
        throw full;
      }
      if (fault == Fault.CORRUPT && source.hasRemaining()) {
        ByteBuffer bad = ByteBuffer.allocate(source.remaining()).put(source).flip();
        bad.put(0, (byte) (bad.get(0) ^ 0x20));
        return bad;
      }
      return source;
    }

    @Override
    public ReadResult read(long offset, int size) throws IOException {
      return faulty(number, writer.read(offset, size));
    }

    @Override
    public void shrink(long sizeBytes) {
      writer.shrink(sizeBytes);
    }

    @Override
    public @Nullable Extent commit() throws IOException {
      failing(Point.COMMIT);
      return writer.commit();
    }

    private Fault failing(Point point) throws IOException {
      try {
        return step(point, number);
      } catch (IOException e) {
        tier.fail(String.valueOf(e.getMessage()));
        throw e;
      }
    }

    @Override
    public void close() {
      try {
        faults.at(Point.CLOSE, number);
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }
      writer.close();
      if (open.compareAndSet(true, false)) {
        openWriters.decrementAndGet();
      }
    }
  }

  @Override
  public boolean has(long number, @Nullable Extent extent, long sizeBytes) throws IOException {
    try {
      if (step(Point.HAS, number) != Fault.NONE) {
        return false;
      }
    } catch (IOException e) {
      tier.fail(String.valueOf(e.getMessage()));
      throw e;
    }
    return tier.has(number, extent, sizeBytes);
  }

  @Override
  public void remove(long number, @Nullable Extent extent, long sizeBytes) {
    tier.remove(number, extent, sizeBytes);
  }

  @Override
  public Set<Long> sparseBundles() {
    return tier.sparseBundles();
  }

  @Override
  public @Nullable Extent move(Extent extent, ByteBuffer through) {
    try {
      step(Point.MOVE, 0);
    } catch (IOException e) {
      return null;
    }
    return tier.move(extent, through);
  }

  @Override
  public boolean couldHold(long sizeBytes) {
    return tier.couldHold(sizeBytes);
  }

  @Override
  public void fail(String reason) {
    tier.fail(reason);
  }

  @Override
  public boolean hasFailed() {
    return tier.hasFailed();
  }

  @Override
  public Census census() {
    return tier.census();
  }

  @Override
  public TierStatus status() {
    return tier.status();
  }

  @Override
  public void close() {
    tier.close();
  }
}
