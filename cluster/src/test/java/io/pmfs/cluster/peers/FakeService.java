package io.pmfs.cluster.peers;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.cluster.client.PeerTimeouts;
import io.pmfs.cluster.server.PeerService;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.formats.Blocks;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A node whose files are in memory or on disk, and whose answers may be held back. */
public final class FakeService implements PeerService {
  public static final int REGULAR = 0100644;

  /** The key that signs requests. */
  private static final byte[] KEY = {1, 2, 3, 4};

  /** For tests that do not test timeouts, on a busy machine. */
  public static final PeerTimeouts PATIENT =
      new PeerTimeouts(
          Duration.ofSeconds(20),
          Duration.ofSeconds(20),
          Duration.ofSeconds(20),
          Duration.ofSeconds(40));

  private static final Instant TIME = Instant.ofEpochSecond(1_700_000_000, 123_456_789);

  /** A file: in memory unless it has a channel. */
  @SuppressWarnings("ArrayRecordComponent") // compared with nothing
  record File(byte[] bytes, @Nullable FileChannel channel, boolean recorded) {}

  final Map<String, File> files = new ConcurrentHashMap<>();
  public final AtomicInteger reads = new AtomicInteger();
  final AtomicInteger proofs = new AtomicInteger();

  /** Each call that has to wait takes one permit. */
  public final Semaphore gate = new Semaphore(0);

  public volatile String held = "none";

  /** The nodes named as holders of each file's copies, and the node that asked last. */
  public volatile List<UUID> holders = List.of();

  volatile @Nullable public UUID asker;

  /** What this node says about the blocks of any file, and what it was asked for last. */
  volatile @Nullable public HeldBlocks blocks;

  public volatile HeldBlocks.@Nullable Wanted wanted;

  /** Paths whose answers take 50 ms. */
  public volatile String slow = "none";

  public volatile CountDownLatch waiting = new CountDownLatch(1);

  public void put(String path, byte[] bytes) {
    files.put(path, new File(bytes, null, false));
  }

  public void put(String path, byte[] bytes, FileChannel channel, boolean recorded)
      throws IOException {
    channel.write(ByteBuffer.wrap(bytes), 0);
    files.put(path, new File(bytes, channel, recorded));
  }

  public static SourceVersion version(byte[] bytes) {
    return new SourceVersion(bytes.length, TIME);
  }

  public static SourceStatus statusOf(int mode, long size) {
    Attributes attributes =
        new Attributes(mode, 1, 1000, 100, 0, size, size / 512, TIME, TIME, TIME);
    return new SourceStatus(new FileIdentity(0, 17 + size), attributes);
  }

  private File file(FileName path) throws FsException, PeerException {
    if (path.toString().equals("broken")) {
      throw new FsException(Errno.EIO, "the source");
    }
    if (path.toString().equals("bug")) {
      throw new IllegalStateException("on purpose");
    }
    if (path.toString().equals("exhausting")) {
      throw new OutOfMemoryError("on purpose");
    }
    if (path.toString().equals("overflowing")) {
      throw new StackOverflowError("on purpose");
    }
    if (path.toString().equals("foreign")) {
      throw new PeerException(PeerException.Kind.REFUSED, "not ours");
    }
    File file = files.get(path.toString());
    if (file == null) {
      throw new FsException(Errno.ENOENT, path.toString());
    }
    return file;
  }

  void hold(FileName path) {
    if (path.toString().matches(slow)) {
      LockSupport.parkNanos(50_000_000);
    }
    if (path.toString().matches(held)) {
      waiting.countDown();
      try {
        if (!gate.tryAcquire(20, TimeUnit.SECONDS)) {
          throw new IllegalStateException("held for ever");
        }
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  @Override
  public void list(FileName directory, Consumer<List<SourceEntry>> batches)
      throws FsException, PeerException {
    hold(directory);
    if (!directory.toString().startsWith("dir")) {
      throw new FsException(Errno.ENOTDIR, directory.toString());
    }
    int count = Integer.parseInt(directory.toString().substring(3));
    for (int i = 0; i < count; i++) {
      SourceStatus status = statusOf(REGULAR, i);
      FileName name = FileName.of("file-" + i);
      batches.accept(List.of(new SourceEntry(name, status.identity(), status.attributes())));
      if (i == 5000) {
        throw new FsException(Errno.EIO, "in the midst");
      }
    }
  }

  @Override
  public SourceStatus status(FileName path) throws FsException, PeerException {
    hold(path);
    if (path.toString().isEmpty() || path.toString().startsWith("dir")) {
      return statusOf(0040755, 4096);
    }
    return statusOf(REGULAR, file(path).bytes().length);
  }

  @Override
  public FileName readSymbolicLink(FileName path) {
    return FileName.of(("to-" + path).getBytes(UTF_8));
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) {
    Map<FileName, byte[]> attributes = new TreeMap<>();
    attributes.put(FileName.of("user.a"), new byte[] {1, 0, 2});
    attributes.put(FileName.of("user.b"), new byte[0]);
    return attributes;
  }

  @Override
  public Content open(
      FileName path, @Nullable SourceVersion expected, boolean onlyCopies, @Nullable UUID asker)
      throws FsException, PeerException {
    this.asker = asker;
    hold(path);
    if (path.toString().isEmpty() || path.toString().startsWith("dir")) {
      throw new FsException(Errno.EISDIR, path.toString());
    }
    File file = file(path);
    if (onlyCopies && path.toString().equals("uncopied")) {
      throw new PeerException(PeerException.Kind.REFUSED, "no copy");
    }
    return new FakeContent(file);
  }

  @Override
  public HeldBlocks blocks(
      FileName path,
      @Nullable SourceVersion expected,
      @Nullable UUID asker,
      HeldBlocks.Wanted wanted)
      throws PeerException {
    this.asker = asker;
    this.wanted = wanted;
    HeldBlocks known = blocks;
    if (known == null) {
      throw new PeerException(PeerException.Kind.REFUSED, "no copy");
    }
    return known;
  }

  private final class FakeContent implements Content {
    private final File file;

    FakeContent(File file) {
      this.file = file;
    }

    @Override
    public SourceStatus status() {
      return statusOf(REGULAR, file.bytes().length);
    }

    @Override
    public void prove() {
      proofs.incrementAndGet();
    }

    @Override
    public List<UUID> holders() {
      return holders;
    }

    @Override
    public OptionalInt checksum(int block) {
      if (!file.recorded()) {
        return OptionalInt.empty();
      }
      int from = block * Blocks.SIZE;
      int size = Math.min(Blocks.SIZE, file.bytes().length - from);
      return OptionalInt.of(Blocks.checksum(ByteBuffer.wrap(file.bytes(), from, size)));
    }

    @Override
    public void copyTo(long offset, int size, ReadSink sink) throws FsException {
      reads.incrementAndGet();
      sink.expect(size);
      // In three pieces, of which the second is read into what the sink offers.
      int first = size / 3;
      int second = size / 3;
      try {
        accept(offset, first, sink);
        if (second > 0) {
          ByteBuffer buffer = sink.buffer(second);
          buffer.put(file.bytes(), (int) offset + first, second);
          sink.accept(new ReadResult.Bytes(buffer.position(0).limit(second)));
        }
        accept(offset + first + second, size - first - second, sink);
      } catch (IOException e) {
        throw new FsException(Errno.EIO, String.valueOf(e.getMessage()));
      }
    }

    private void accept(long offset, int size, ReadSink sink) throws IOException {
      if (size == 0) {
        return;
      }
      FileChannel channel = file.channel();
      sink.accept(
          channel == null
              ? new ReadResult.Bytes(ByteBuffer.wrap(file.bytes(), (int) offset, size).slice())
              : new ReadResult.FileRange(channel, offset, size));
    }
  }

  /** The key that signs requests. */
  public static byte[] key() {
    return KEY.clone();
  }
}
