package io.pmfs.fs;

import static io.pmfs.source.FaultyStore.Operation.STATUS;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.pmfs.memory.CollectingSink;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.FakeStore;
import io.pmfs.source.FaultyStore;
import io.pmfs.source.FaultyStore.Operation;
import io.pmfs.tasks.Dataset;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

@Timeout(60)
final class PmfsFileSystemTest {
  private static final long ROOM = 256L << 20;

  @TempDir private Path directory;

  static Errno errnoOf(ThrowingCallable task) {
    FsException e = catchThrowableOfType(FsException.class, task);
    return Objects.requireNonNull(e, "it did not fail").errno();
  }

  private static void sample(FakeStore store) {
    store.directory("a");
    store.directory("a/empty");
    store.file("a/f", 1, 5000);
    store.file("zero", 2, 0);
    store.file("big", 3, (3 << 20) + 7);
    store.symbolicLink("link", "a/f");
    store.special("fifo", FileType.FIFO);
  }

  @Test
  void inode_everyFile_isAsTheSourceSays() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      for (FileName path : dataset.store.paths()) {
        assertThat(dataset.fs.inode(dataset.number(path)).attributes())
            .as("%s", path)
            .isEqualTo(dataset.store.expectedStatus(path).attributes());
      }
      assertThat(dataset.number("")).isEqualTo(PmfsFileSystem.ROOT);
    }
  }

  @Test
  void find_nameThatIsNotThere_isEnoentAndAsksTheSourceOnce() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      for (int i = 0; i < 3; i++) {
        assertThat(errnoOf(() -> dataset.number("none"))).isEqualTo(Errno.ENOENT);
        assertThat(errnoOf(() -> dataset.number("a/none"))).isEqualTo(Errno.ENOENT);
      }
      assertThat(dataset.asked().lists()).isEqualTo(2);
    }
  }

  @Test
  void find_inWhatIsNoDirectory_isEnotdir() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      for (String path : List.of("a/f/x", "link/f", "fifo/x")) {
        assertThat(errnoOf(() -> dataset.number(path))).as(path).isEqualTo(Errno.ENOTDIR);
      }
      assertThat(errnoOf(() -> dataset.list("zero"))).isEqualTo(Errno.ENOTDIR);
    }
  }

  @Test
  void inode_numberThatWasNeverGiven_isEstale() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      assertThat(errnoOf(() -> dataset.fs.inode(4711))).isEqualTo(Errno.ESTALE);
      assertThat(errnoOf(() -> dataset.read(4711, 0, 1))).isEqualTo(Errno.ESTALE);
      assertThat(errnoOf(() -> dataset.fs.find(4711, FileName.of("x")))).isEqualTo(Errno.ESTALE);
      assertThat(errnoOf(() -> dataset.fs.readSymbolicLink(4711))).isEqualTo(Errno.ESTALE);
      assertThat(errnoOf(() -> dataset.fs.extendedAttributes(4711))).isEqualTo(Errno.ESTALE);
    }
  }

  @Test
  void list_directory_hasEveryNameOnceInSourceOrder() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      assertThat(dataset.names("")).containsExactly("a", "zero", "big", "link", "fifo");
      assertThat(dataset.list(""))
          .extracting(DirectoryEntry::type)
          .containsExactly(
              FileType.DIRECTORY,
              FileType.REGULAR,
              FileType.REGULAR,
              FileType.SYMBOLIC_LINK,
              FileType.FIFO);
      assertThat(dataset.names("a/empty")).isEmpty();
      for (DirectoryEntry entry : dataset.list("")) {
        assertThat(dataset.fs.find(PmfsFileSystem.ROOT, entry.name())).isEqualTo(entry);
      }
    }
  }

  /** The reader requests all attributes itself. */
  @Test
  void list_withoutThreads_hasEveryName() throws Exception {
    int names = 300;
    ExecutorService none =
        new ThreadPoolExecutor(
            1,
            1,
            0,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            // More stack than the system can provide.
            work -> new Thread(null, work, "none", 1L << 50));
    try (Dataset dataset =
        new Dataset(
            directory,
            store -> {
              for (int i = 0; i < names; i++) {
                store.file("f" + i, i, 10);
              }
            },
            ROOM)) {
      PmfsFileSystem fs =
          new PmfsFileSystem(
              dataset.namespace,
              dataset.source,
              dataset.copies,
              dataset.stager,
              none,
              InstantSource.system());
      List<DirectoryEntry> found = new ArrayList<>();
      fs.list(PmfsFileSystem.ROOT, 0, found::add);
      assertThat(found).hasSize(names);
      for (DirectoryEntry entry : found) {
        assertThat(fs.inode(entry.inode()).attributes().size()).isEqualTo(10);
      }
    }
  }

  @Test
  void list_fromAnyPosition_goesOnAfterIt() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      List<DirectoryEntry> all = dataset.list("");
      for (int i = 0; i < all.size(); i++) {
        List<DirectoryEntry> one = new ArrayList<>();
        dataset.fs.list(
            PmfsFileSystem.ROOT,
            i == 0 ? 0 : all.get(i - 1).position(),
            entry -> {
              one.add(entry);
              return false;
            });
        assertThat(one).containsExactly(all.get(i));
      }
      List<DirectoryEntry> none = new ArrayList<>();
      dataset.fs.list(PmfsFileSystem.ROOT, all.get(4).position(), none::add);
      dataset.fs.list(PmfsFileSystem.ROOT, Long.MAX_VALUE, none::add);
      assertThat(none).isEmpty();
    }
  }

  @Test
  void find_namesThatAreNotText_areFoundByteByByte() throws Exception {
    FileName odd = FileName.of(new byte[] {(byte) 0xff, '\n', ' ', (byte) 0x80});
    FileName other = FileName.of(new byte[] {(byte) 0xfe, '\n', ' ', (byte) 0x80});
    FileName longest = FileName.of("x".repeat(255));
    try (Dataset dataset =
        new Dataset(
            directory,
            store -> {
              store.file(odd, 1, 10);
              store.file(other, 2, 20);
              store.file(longest, 3, 30);
            },
            ROOM)) {
      assertThat(dataset.fs.inode(dataset.number(odd)).attributes().size()).isEqualTo(10);
      assertThat(dataset.read(dataset.number(other), 0, 100))
          .isEqualTo(FakeStore.content(2, 0, 20));
      assertThat(dataset.list("")).extracting(DirectoryEntry::name).contains(odd, other, longest);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "0, 5000, 5000",
    "0, 0, 0",
    "4999, 1, 1",
    "4999, 100, 1",
    "5000, 1, 0",
    "5001, 1, 0",
    "100, 2147483647, 4900",
    "9223372036854775807, 2147483647, 0"
  })
  void read_range_endsAtTheEndOfTheFile(long offset, int size, int expected) throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      long number = dataset.number("a/f");
      for (int i = 0; i < 2; i++) {
        assertThat(dataset.read(number, offset, size))
            .isEqualTo(FakeStore.content(1, offset, expected));
        dataset.awaitIdle();
      }
      assertThat(dataset.read(dataset.number("zero"), offset, size)).isEmpty();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "a, 0, 1, EISDIR",
    "link, 0, 1, EINVAL",
    "fifo, 0, 1, EINVAL",
    "a/f, -1, 1, EINVAL",
    "a/f, 0, -1, EINVAL"
  })
  void read_whatCannotBeRead_saysWhy(String path, long offset, int size, Errno errno)
      throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      long number = dataset.number(path);

      assertThat(errnoOf(() -> dataset.fs.read(number, offset, size, new CollectingSink())))
          .isEqualTo(errno);
      assertThat(dataset.fs.readStatistics()).isEqualTo(new PmfsFileSystem.ReadStatistics(1, 1));
    }
  }

  @Test
  void readAll_secondEpoch_asksTheSourceNothing() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      Map<String, Long> numbers = dataset.readAll();
      assertThat(dataset.asked().bytes()).isEqualTo(5000 + (3 << 20) + 7);

      assertThat(dataset.readAll()).isEqualTo(numbers);
      assertThat(dataset.read("big")).isEqualTo(FakeStore.content(3, 0, (3 << 20) + 7));
      assertThat(dataset.asked().total()).isZero();
      assertThat(dataset.fs.readStatistics().errors()).isZero();
    }
  }

  @Test
  void readAll_secondSession_looksAtEachFileOnceAndReadsAndListsNothing() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      Map<String, Long> numbers = dataset.readAll();
      dataset.remount(store -> {});

      assertThat(dataset.readAll()).isEqualTo(numbers);
      var asked = dataset.asked();
      assertThat(asked.stats()).isEqualTo(numbers.size() - 1);
      assertThat(asked.total()).isEqualTo(asked.stats());
      dataset.readAll();
      assertThat(dataset.asked().total()).isZero();
      assertThat(dataset.copies.verified()).isEqualTo(2);
      assertThat(dataset.copies.mismatches()).isZero();
    }
  }

  @Test
  void readSymbolicLink_target_isKept() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      assertThat(dataset.fs.readSymbolicLink(dataset.number("link"))).isEqualTo(FileName.of("a/f"));
      assertThat(dataset.asked().readlinks()).isEqualTo(1);
      dataset.remount(store -> {});
      assertThat(dataset.fs.readSymbolicLink(dataset.number("link"))).isEqualTo(FileName.of("a/f"));
      assertThat(dataset.asked().readlinks()).isZero();
      assertThat(errnoOf(() -> dataset.fs.readSymbolicLink(dataset.number("a/f"))))
          .isEqualTo(Errno.EINVAL);
    }
  }

  @Test
  void readSymbolicLink_newLinkOfTheSameLengthAndInodeNumber_isTheNewTarget() throws Exception {
    try (Dataset dataset =
        new Dataset(directory, store -> store.symbolicLink("current", "v1"), ROOM)) {
      assertThat(dataset.fs.readSymbolicLink(dataset.number("current")))
          .isEqualTo(FileName.of("v1"));
      dataset.remount(store -> store.relink("current", "v2"));

      assertThat(dataset.fs.readSymbolicLink(dataset.number("current")))
          .isEqualTo(FileName.of("v2"));
    }
  }

  @Test
  void extendedAttributes_file_areKeptUntilItsChangeTimeMoves() throws Exception {
    FileName name = FileName.of("user.label");
    try (Dataset dataset =
        new Dataset(
            directory,
            store -> {
              sample(store);
              store.xattr("a/f", "user.label", "cat".getBytes(UTF_8));
              store.xattr("", "user.label", "animals".getBytes(UTF_8));
            },
            ROOM)) {
      for (int i = 0; i < 3; i++) {
        assertThat(dataset.fs.extendedAttributes(dataset.number("a/f")).get(name))
            .isEqualTo("cat".getBytes(UTF_8));
        assertThat(dataset.fs.extendedAttributes(dataset.number("zero"))).isEmpty();
        assertThat(dataset.fs.extendedAttributes(PmfsFileSystem.ROOT).get(name))
            .isEqualTo("animals".getBytes(UTF_8));
      }
      assertThat(dataset.asked().xattrs()).isEqualTo(3);

      dataset.remount(store -> store.xattr("a/f", "user.label", "dog".getBytes(UTF_8)));
      assertThat(dataset.fs.extendedAttributes(dataset.number("a/f")).get(name))
          .isEqualTo("dog".getBytes(UTF_8));
      assertThat(dataset.fs.extendedAttributes(dataset.number("zero"))).isEmpty();
      assertThat(dataset.asked().xattrs()).isEqualTo(1);
    }
  }

  /** As {@code ls -l} asks. */
  @ParameterizedTest
  @EnumSource(
      value = Operation.class,
      names = {"XATTRS", "ACCESS"})
  void extendedAttributes_ofOneEntryAfterTheOther_areAskedForManyAtOnce(Operation asked)
      throws Exception {
    int count = 100;
    try (Dataset dataset =
        new Dataset(
            directory,
            store -> {
              store.directory("d");
              for (int i = 0; i < count; i++) {
                store.file("d/f" + i, i, 10);
              }
            },
            ROOM)) {
      dataset.number("d/f0");
      AtomicInteger now = new AtomicInteger();
      AtomicInteger most = new AtomicInteger();
      AtomicInteger requests = new AtomicInteger();
      dataset.faulty.faults(
          (operation, path, offset) -> {
            if (operation == asked) {
              requests.incrementAndGet();
              most.accumulateAndGet(now.incrementAndGet(), Math::max);
              LockSupport.parkNanos(2_000_000);
              now.decrementAndGet();
            }
            return FaultyStore.Answer.WHOLE;
          });
      for (int i = 0; i < count; i++) {
        long number = dataset.number("d/f" + i);
        if (asked == Operation.XATTRS) {
          assertThat(dataset.fs.extendedAttributes(number)).isEmpty();
        } else {
          assertThat(dataset.fs.accessList(number).size()).isZero();
        }
      }
      assertThat(requests.get()).isBetween(count, asked == Operation.XATTRS ? count : count + 1);
      assertThat(most.get()).isGreaterThan(2);
    }
  }

  @Test
  void extendedAttributes_ofDirectories_areRefreshedToo() throws Exception {
    FileName name = FileName.of("user.label");
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      assertThat(dataset.fs.extendedAttributes(PmfsFileSystem.ROOT)).isEmpty();
      assertThat(dataset.fs.extendedAttributes(dataset.number("a"))).isEmpty();
      dataset.remount(
          store -> {
            store.xattr("", "user.label", new byte[] {1});
            store.xattr("a", "user.label", new byte[] {2});
          });

      assertThat(dataset.fs.extendedAttributes(PmfsFileSystem.ROOT).get(name))
          .isEqualTo(new byte[] {1});
      assertThat(dataset.fs.extendedAttributes(dataset.number("a")).get(name))
          .isEqualTo(new byte[] {2});
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = Operation.class,
      names = {"READ_LINK", "XATTRS", "STATFS"})
  void operations_sourceFails_giveItsErrnoAndWorkAgainAfterwards(Operation operation)
      throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      long link = dataset.number("link");
      ThrowingCallable call =
          switch (operation) {
            case READ_LINK -> () -> dataset.fs.readSymbolicLink(link);
            case XATTRS -> () -> dataset.fs.extendedAttributes(link);
            default -> () -> dataset.fs.statistics();
          };
      dataset.faulty.on(operation).fail(Errno.EHOSTDOWN);
      assertThat(errnoOf(call)).isEqualTo(Errno.EHOSTDOWN);
      dataset.faulty.clearFaults();
      try {
        call.call();
      } catch (Throwable e) {
        throw new AssertionError(e);
      }
    }
  }

  @Test
  void statistics_areTheSources() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      assertThat(dataset.fs.statistics()).isEqualTo(dataset.store.statistics());
    }
  }

  @Test
  void statistics_askedAgainSoon_areNotAskedOfTheSource() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      dataset.asked();
      for (int i = 0; i < 3; i++) {
        dataset.fs.statistics();
      }
      assertThat(dataset.asked().statfs()).isEqualTo(1);
    }
  }

  @Test
  void mount_rootIsNoDirectory_isEnotdir() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      dataset.faulty.on(STATUS).of("").fail(Errno.ENOTDIR);
      assertThat(errnoOf(dataset::openFileSystem)).isEqualTo(Errno.ENOTDIR);
    }
  }

  @Test
  void seek_inFileWithoutHoles_isAllDataAndAsksTheSourceNothing() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sample, ROOM)) {
      long number = dataset.number("a/f");
      dataset.asked();
      assertThat(dataset.fs.seekData(number, 0)).isZero();
      assertThat(dataset.fs.seekData(number, 4999)).isEqualTo(4999);
      assertThat(dataset.fs.seekHole(number, 0)).isEqualTo(5000);
      assertThat(dataset.asked().total()).isZero();
    }
  }

  private static void sampleWithHole(FakeStore store) {
    sample(store);
    store.hole("big", 1 << 20, 2 << 20);
  }

  @Test
  void seek_inFileWithAHole_isWhatTheSourceSays() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sampleWithHole, ROOM)) {
      long number = dataset.number("big");
      assertThat(dataset.fs.seekHole(number, 0)).isEqualTo(1 << 20);
      assertThat(dataset.fs.seekHole(number, (1 << 20) + 5)).isEqualTo((1 << 20) + 5);
      assertThat(dataset.fs.seekHole(number, 2 << 20)).isEqualTo((3 << 20) + 7);
      assertThat(dataset.fs.seekData(number, 1 << 20)).isEqualTo(2 << 20);
      assertThat(dataset.fs.seekData(number, (2 << 20) + 5)).isEqualTo((2 << 20) + 5);
      assertThat(dataset.store.openFiles()).isZero();
    }
  }

  @ParameterizedTest
  @CsvSource({"SEEK, EINVAL", "SEEK, EOPNOTSUPP", "SEEK, EIO", "OPEN, EACCES", "OPEN, ENOENT"})
  void seek_whereTheSourceCannotTell_isAllData(Operation operation, Errno errno) throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sampleWithHole, ROOM)) {
      long number = dataset.number("big");
      dataset.faulty.on(operation).of("big").fail(errno);
      assertThat(dataset.fs.seekData(number, 1 << 20)).isEqualTo(1 << 20);
      assertThat(dataset.fs.seekHole(number, 0)).isEqualTo((3 << 20) + 7);
      assertThat(dataset.store.openFiles()).isZero();
    }
  }

  @Test
  void seek_inFileThatIsAnotherByNow_isAllData() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sampleWithHole, ROOM)) {
      long number = dataset.number("big");
      dataset.store.file("big", 9, 4 << 20);
      dataset.store.hole("big", 0, 2 << 20);
      assertThat(dataset.fs.seekHole(number, 0)).isEqualTo((3 << 20) + 7);
    }
  }

  @Test
  void seek_atTheEndOrInNoFile_fails() throws Exception {
    try (Dataset dataset = new Dataset(directory, PmfsFileSystemTest::sampleWithHole, ROOM)) {
      for (String path : List.of("big", "a/f", "zero")) {
        long number = dataset.number(path);
        long size = dataset.fs.inode(number).attributes().size();
        for (long offset : new long[] {size, size + 1, Long.MAX_VALUE, -1}) {
          assertThat(errnoOf(() -> dataset.fs.seekData(number, offset))).isEqualTo(Errno.ENXIO);
          assertThat(errnoOf(() -> dataset.fs.seekHole(number, offset))).isEqualTo(Errno.ENXIO);
        }
      }
      for (String path : List.of("a", "link", "fifo")) {
        assertThat(errnoOf(() -> dataset.fs.seekData(dataset.number(path), 0)))
            .isEqualTo(Errno.EINVAL);
      }
      dataset.store.hole("big", 1 << 20, (3 << 20) + 7);
      assertThat(errnoOf(() -> dataset.fs.seekData(dataset.number("big"), 1 << 20)))
          .as("in the hole at the end")
          .isEqualTo(Errno.ENXIO);
    }
  }
}
