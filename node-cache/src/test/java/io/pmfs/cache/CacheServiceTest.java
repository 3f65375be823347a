package io.pmfs.cache;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import io.pmfs.fuse.system.DescriptorSocket;
import io.pmfs.fuse.system.DirectoryStore;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.CountedBackingStore;
import io.pmfs.source.LentFile;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A service with real sockets, and sources that read through it. */
final class CacheServiceTest {
  private static final long CAPACITY = 64 << 20;
  private static final Duration EVICT_AFTER = Duration.ofHours(1);

  @TempDir private Path directory;

  private Path source;
  private Path copies;
  private Path socket;
  private CacheService service;
  private Instant now = Instant.parse("2026-01-01T00:00:00Z");
  private final InstantSource clock = () -> now;
  private final List<AutoCloseable> opened = new ArrayList<>();

  /** A source that counts reads, and a client. */
  private record Mount(CachedStore store, CountedBackingStore source, CacheClient client) {
    byte[] read(String name, int size) throws FsException {
      try (SourceFile file = store.open(FileName.of(name))) {
        return CacheServiceTest.read(file, 0, size);
      }
    }

    long sourceBytes() {
      return source.operations().bytes();
    }
  }

  @BeforeEach
  void start() throws IOException {
    source = Files.createDirectory(directory.resolve("source"));
    copies = directory.resolve("copies");
    socket = directory.resolve("socket");
    open(CAPACITY);
  }

  private void open(long capacity) throws IOException {
    service =
        CacheService.open(
            new CacheService.Settings(
                socket,
                copies,
                capacity,
                EVICT_AFTER,
                List.of(source),
                CacheService.Limits.of(capacity)),
            clock);
  }

  @AfterEach
  void stop() throws Exception {
    for (AutoCloseable one : opened) {
      one.close();
    }
    service.close();
  }

  private Mount mount() throws FsException {
    CountedBackingStore counted = new CountedBackingStore(new DirectoryStore(source));
    CacheClient client = new CacheClient(socket);
    CachedStore store = new CachedStore(counted, client);
    opened.add(store);
    return new Mount(store, counted, client);
  }

  private byte[] write(String name, int size) throws IOException {
    byte[] content = new byte[size];
    new Random(size).nextBytes(content);
    Files.write(source.resolve(name), content);
    return content;
  }

  private static byte[] read(SourceFile file, long offset, int size) throws FsException {
    ByteBuffer buffer = ByteBuffer.allocateDirect(size);
    byte[] read = new byte[file.read(offset, buffer)];
    buffer.flip().get(read);
    return read;
  }

  /** As with sshfs, where another file can get the same inode number and times. */
  @Test
  void key_ofAFileWithoutAChangeTimeOfItsOwn_isNone() {
    Instant second = Instant.parse("2026-11-26T18:00:00Z");
    assertThat(Session.isFit(status(second), true)).isFalse();
    assertThat(Session.isFit(status(second), false)).isTrue();
    assertThat(Session.isFit(status(second.plusNanos(1)), true)).isTrue();
  }

  private static SourceStatus status(Instant changed) {
    return new SourceStatus(
        new FileIdentity(0, 7),
        new Attributes(0100644, 1, 0, 0, 0, 10, 8, changed, changed, changed));
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> all = Files.walk(copies.resolve("copies"))) {
      return all.filter(Files::isRegularFile).toList();
    }
  }

  @Test
  void read_firstReader_getsTheCopyAsItGrows() throws Exception {
    byte[] content = write("f", 5_000_000);
    Mount mount = mount();

    try (SourceFile file = mount.store().open(FileName.of("f"))) {
      for (int at = 0; at < content.length; at += 1_000_000) {
        assertThat(read(file, at, 1_000_000))
            .isEqualTo(Arrays.copyOfRange(content, at, at + 1_000_000));
      }
    }

    assertThat(mount.sourceBytes()).isZero();
    assertThat(service.report().copiedBytes()).isEqualTo(content.length);
  }

  @Test
  void read_manyMountsAtOnce_readsTheSourceOnceInTotal() throws Exception {
    int files = 50;
    List<byte[]> contents = new ArrayList<>();
    for (int i = 0; i < files; i++) {
      contents.add(write("f" + i, 10_000 * (i + 1)));
    }
    List<Mount> mounts = List.of(mount(), mount(), mount(), mount());
    ExecutorService threads = Executors.newCachedThreadPool();
    opened.add(threads::shutdownNow);
    List<Future<Void>> readers = new ArrayList<>();
    for (Mount mount : mounts) {
      readers.add(
          threads.submit(
              () -> {
                for (int i = 0; i < files; i++) {
                  byte[] content = contents.get(i);
                  assertThat(mount.read("f" + i, content.length)).isEqualTo(content);
                }
                return null;
              }));
    }
    for (Future<Void> reader : readers) {
      reader.get();
    }

    assertThat(mounts.stream().mapToLong(Mount::sourceBytes).sum()).isZero();
    assertThat(service.report().copiedBytes())
        .isEqualTo(contents.stream().mapToLong(content -> content.length).sum());
    assertThat(files()).hasSize(files);
  }

  @Test
  void lend_copyThatGrows_isNotLent_andTheFirstReadUsesIt() throws Exception {
    byte[] content = write("f", 20_000_000);
    Mount mount = mount();
    try (SourceFile file = mount.store().open(FileName.of("f"))) {
      assertThat(file.lend()).isNull();
      for (int at = 0; at < content.length; at += 1_000_000) {
        assertThat(read(file, at, 1_000_000))
            .isEqualTo(Arrays.copyOfRange(content, at, at + 1_000_000));
      }
    }

    assertThat(mount.client().statistics().asked()).isEqualTo(1);
    assertThat(mount.sourceBytes()).isZero();
  }

  @Test
  void lend_wholeCopy_isHeldAtTheServiceUntilItIsClosed() throws Exception {
    byte[] content = write("f", 100_000);
    mount().read("f", content.length);
    awaitOpenBytes(0);
    Mount mount = mount();
    SourceFile file = mount.store().open(FileName.of("f"));
    LentFile first = Objects.requireNonNull(file.lend());
    LentFile second = Objects.requireNonNull(file.lend());
    assertThat(Files.readAllBytes(fileOf(first))).isEqualTo(content);
    assertThat(read(file, 0, 100)).as("reads have a copy of their own").hasSize(100);
    file.close();
    first.close();
    second.closeDescriptor();
    mount.read("f", content.length); // answered after the release before it
    assertThat(openBytes()).isPositive();
    second.close();
    awaitOpenBytes(0);
    assertThat(mount.sourceBytes()).isZero();
  }

  @Test
  void lend_serviceEndsMeanwhile_theFileStaysReadable() throws Exception {
    byte[] content = write("f", 100_000);
    mount().read("f", content.length);
    Mount mount = mount();
    try (SourceFile file = mount.store().open(FileName.of("f"));
        LentFile lent = Objects.requireNonNull(file.lend())) {
      service.close();
      Files.delete(files().get(0));
      assertThat(Files.readAllBytes(fileOf(lent))).isEqualTo(content);
      assertThat(file.lend()).isNull();
    }
    open(CAPACITY);
  }

  private static Path fileOf(LentFile lent) {
    return Path.of("/proc/self/fd/" + lent.descriptor());
  }

  @Test
  void lend_refused_isNotAskedAgainByTheFirstRead() throws Exception {
    service.close();
    open(50_000);
    byte[] content = write("f", 100_000);
    Mount mount = mount();
    try (SourceFile file = mount.store().open(FileName.of("f"))) {
      assertThat(file.lend()).isNull();
      assertThat(read(file, 0, content.length)).isEqualTo(content);
    }

    assertThat(mount.client().statistics().asked()).isEqualTo(1);
    assertThat(mount.sourceBytes()).isEqualTo(content.length);
  }

  @Test
  void report_ofACacheThatHangs_ends() throws Exception {
    Path silent = directory.resolve("silent");
    try (DescriptorSocket hanging = DescriptorSocket.listen(silent, 8)) {
      assertThat(reportFailure(silent)).isEqualTo(Errno.EAGAIN);

      DaemonThread.start("closing", () -> closeAll(hanging));
      assertThat(reportFailure(silent)).isEqualTo(Errno.EPIPE);
    }
  }

  private static Errno reportFailure(Path socket) {
    return assertTimeoutPreemptively(
        Duration.ofSeconds(30),
        () ->
            assertThatExceptionOfType(FsException.class)
                .isThrownBy(() -> CacheClient.report(socket))
                .actual()
                .errno());
  }

  private static void closeAll(DescriptorSocket listening) {
    try {
      while (true) {
        listening.accept(1 << 16).close();
      }
    } catch (FsException e) {
      // the test has ended
    }
  }

  private long openBytes() {
    return service.report().room().users().values().stream()
        .mapToLong(CacheReport.OfUser::openBytes)
        .sum();
  }

  private void awaitOpenBytes(long bytes) {
    Await.until(bytes + " bytes are open", () -> openBytes() == bytes);
  }

  @Test
  void read_withoutService_readsTheSource_andTheServiceOnceItIsBack() throws Exception {
    byte[] content = write("f", 100_000);
    service.close();
    Mount mount = mount();
    assertThat(mount.read("f", content.length)).isEqualTo(content);
    assertThat(mount.sourceBytes()).isEqualTo(content.length);

    open(CAPACITY);
    Await.until(
        "the service is asked again",
        () -> {
          assertThat(mount.read("f", content.length)).isEqualTo(content);
          return service.report().answered() > 0;
        });
  }

  @Test
  void read_serviceDoesNotAnswer_readsTheSourceAndAsksItNoMore() throws Exception {
    byte[] content = write("f", 100_000);
    service.close();
    DescriptorSocket silent = DescriptorSocket.listen(socket, 8);
    try {
      Mount mount = mount();
      for (int i = 0; i < 3; i++) {
        assertThat(mount.read("f", content.length)).isEqualTo(content);
      }

      assertThat(mount.client().statistics().asked()).isEqualTo(1);
      assertThat(mount.client().statistics().problem()).contains("does not answer");
    } finally {
      silent.close();
    }
    Files.delete(socket);
    open(CAPACITY);
  }

  @Test
  void read_serviceEndsWhileAFileIsOpen_goesOnFromTheOpenCopy() throws Exception {
    byte[] content = write("f", 100_000);
    Mount mount = mount();
    try (SourceFile file = mount.store().open(FileName.of("f"))) {
      assertThat(read(file, 0, content.length)).isEqualTo(content);
      service.close();
      Files.delete(files().get(0));

      assertThat(read(file, 0, content.length)).isEqualTo(content);
    }
    assertThat(mount.sourceBytes()).isZero();
    open(CAPACITY);
  }

  @Test
  void open_afterARestart_usesTheCopies_andDropsBadOnes() throws Exception {
    byte[] good = write("good", 3_000_000);
    byte[] bad = write("bad", 50_000);
    Mount first = mount();
    first.read("good", good.length);
    first.read("bad", bad.length);
    service.close();
    for (Path file : files()) {
      if (Files.size(file) == bad.length) {
        Files.write(file, new byte[bad.length]);
      }
    }
    Files.writeString(copies.resolve("incoming/5"), "left");
    open(CAPACITY);

    Mount second = mount();
    assertThat(second.read("bad", bad.length)).isEqualTo(bad);
    long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
    while (second.client().statistics().copyBytes() == 0 && System.nanoTime() - end < 0) {
      // A large copy is verified after the answer.
      assertThat(second.read("good", good.length)).isEqualTo(good);
    }

    assertThat(second.client().statistics().copyBytes()).isEqualTo(good.length);
    assertThat(service.report().copiedBytes()).isZero();
    assertThat(copies.resolve("incoming/5")).doesNotExist();
  }

  @Test
  void read_changedFile_isAnotherCopy() throws Exception {
    write("f", 10_000);
    Mount mount = mount();
    mount.read("f", 10_000);
    byte[] changed = "changed".getBytes(UTF_8);
    Files.write(source.resolve("f"), changed);
    Files.setLastModifiedTime(source.resolve("f"), FileTime.from(Instant.EPOCH));

    assertThat(mount.read("f", changed.length)).isEqualTo(changed);
    assertThat(service.report().room().copies()).isEqualTo(2);
  }

  @Test
  void read_fullCache_evictsWhatWasNotUsedLately() throws Exception {
    service.close();
    open(1 << 20);
    byte[] content = write("old", 500_000);
    write("older", 480_000);
    byte[] other = write("new", 510_000);
    Mount mount = mount();
    mount.read("older", 480_000);
    awaitOpenBytes(0);
    mount.read("old", content.length);
    awaitOpenBytes(0);

    assertThat(mount.read("new", other.length)).isEqualTo(other);
    assertThat(mount.sourceBytes()).isEqualTo(other.length);
    now = now.plus(EVICT_AFTER).plusSeconds(1);
    assertThat(mount.read("new", other.length)).isEqualTo(other);

    assertThat(mount.sourceBytes()).isEqualTo(other.length);
    assertThat(service.report().room().evicted()).isEqualTo(1);
    assertThat(files()).hasSize(2);
  }

  @Test
  void read_moreThanHalfOfTheCapacity_isNotCopied() throws Exception {
    service.close();
    open(1 << 20);
    byte[] content = write("f", 600_000);
    Mount mount = mount();
    assertThat(mount.read("f", content.length)).isEqualTo(content);

    assertThat(mount.sourceBytes()).isEqualTo(content.length);
  }

  @Test
  void read_fullCache_keepsOpenCopies_andEvictsOthersUsedLater() throws Exception {
    service.close();
    open(1 << 20);
    byte[] content = write("open", 100_000);
    write("a", 400_000);
    write("b", 390_000);
    write("c", 150_000);
    byte[] other = write("new", 270_000);
    Mount mount = mount();
    try (SourceFile file = mount.store().open(FileName.of("open"))) {
      read(file, 0, content.length);
      mount.read("a", 400_000);
      mount.read("b", 390_000);
      mount.read("c", 150_000);
      awaitOpenBytes(content.length);
      now = now.plus(EVICT_AFTER).plusSeconds(1);

      assertThat(mount.read("new", other.length)).isEqualTo(other);

      assertThat(service.report().room().evicted()).as(service.report().toJson()).isOne();
      assertThat(mount.read("open", content.length)).isEqualTo(content);
      assertThat(mount.sourceBytes()).isZero();
    }
  }

  @Test
  void read_mappedFileWasWritten_whileItsCopyWasMade_isAnotherCopyLater() throws Exception {
    byte[] content = new byte[100_000];
    Path path = source.resolve("f");
    Files.write(path, content);
    Mount mount = mount();
    try (FileChannel channel = FileChannel.open(path, READ, WRITE)) {
      MappedByteBuffer mapped = channel.map(FileChannel.MapMode.READ_WRITE, 0, content.length);
      mapped.put(
          0,
          (byte)
              1); // the kernel updates the time for this write only, until it writes back the page
      content[0] = 1;
      assertThat(mount.read("f", content.length)).isEqualTo(content);
      Object changed = Files.getAttribute(path, "unix:ctime");
      content[1] = 2;
      long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
      do {
        mapped.put(1, (byte) 2);
        assertThat(System.nanoTime()).as("the change shows").isLessThan(end);
      } while (Files.getAttribute(path, "unix:ctime").equals(changed)
          && mount.read("f", content.length)[1] != 2);

      assertThat(mount.read("f", content.length)).isEqualTo(content);
    }
  }
}
