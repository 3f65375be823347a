package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.LentFile;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import io.pmfs.source.StoreStatistics;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.UserDefinedFileAttributeView;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** With openat2(2), and without it as on old kernels and in some containers. */
@ParameterizedClass(name = "openat2={0}")
@ValueSource(booleans = {true, false})
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class DirectoryStoreTest {
  @Parameter boolean hasOpenat2;
  @TempDir private Path root;
  private DirectoryStore store;

  @SuppressWarnings("NullAway.Init")
  DirectoryStoreTest() {}

  @BeforeEach
  void open() throws FsException {
    store = open(root);
  }

  private DirectoryStore open(Path directory) throws FsException {
    return new DirectoryStore(directory, new Beneath(hasOpenat2));
  }

  @AfterEach
  void close() {
    store.close();
  }

  private static FileName name(String text) {
    return FileName.of(text);
  }

  private static Errno errnoOf(ThrowingCallable task) {
    FsException e = catchThrowableOfType(FsException.class, task);
    return Objects.requireNonNull(e, "it did not fail").errno();
  }

  private List<FileName> list(FileName directory) throws FsException {
    List<FileName> names = new ArrayList<>();
    store.list(
        directory,
        batch -> {
          names.addAll(batch);
          return true;
        });
    return names;
  }

  private byte[] write(String path, int size) throws IOException {
    byte[] content = new byte[size];
    new Random(size).nextBytes(content);
    Files.write(root.resolve(path), content);
    return content;
  }

  // Attributes.

  private static FileType type(Path path) {
    if (Files.isSymbolicLink(path)) {
      return FileType.SYMBOLIC_LINK;
    }
    return Files.isDirectory(path) ? FileType.DIRECTORY : FileType.REGULAR;
  }

  private static Instant time(Map<String, Object> attributes, String name) {
    return ((FileTime) Objects.requireNonNull(attributes.get(name))).toInstant();
  }

  private void assertAsTheSystemSays(String path) throws Exception {
    Path file = root.resolve(path);
    Map<String, Object> expected = Files.readAttributes(file, "unix:*", LinkOption.NOFOLLOW_LINKS);
    SourceStatus status = store.status(name(path));
    Attributes attributes = status.attributes();

    assertThat(attributes.mode()).as(path).isEqualTo(expected.get("mode"));
    assertThat(attributes.linkCount()).as(path).isEqualTo(expected.get("nlink"));
    assertThat(attributes.uid()).as(path).isEqualTo(expected.get("uid"));
    assertThat(attributes.gid()).as(path).isEqualTo(expected.get("gid"));
    assertThat(attributes.size()).as(path).isEqualTo(expected.get("size"));
    assertThat(attributes.modificationTime())
        .as(path)
        .isEqualTo(time(expected, "lastModifiedTime"));
    assertThat(attributes.accessTime()).as(path).isEqualTo(time(expected, "lastAccessTime"));
    assertThat(attributes.changeTime()).as(path).isEqualTo(time(expected, "ctime"));
    assertThat(attributes.type()).as(path).isEqualTo(type(file));
    assertThat(status.identity().inode()).as(path).isEqualTo(expected.get("ino"));
    assertThat(status.identity().device()).as(path).isZero();
    assertThat(attributes.blocks())
        .as(path)
        .isEqualTo(Long.parseLong(Shell.run(root, "stat -c %b -- './" + path + "'")));
  }

  @Test
  void status_everyKindOfFile_isAsTheSystemSays() throws Exception {
    Shell.run(
        root,
        """
        mkdir d; chmod 2751 d; echo hello > d/f; chmod 4640 d/f
        ln d/f d/g; ln -s d/f link; ln -s nowhere dangling
        : > empty; truncate -s 5G sparse; chmod 0 empty
        touch -d '1969-12-31 23:59:58.123456789 UTC' old
        touch -d '2514-05-30 01:53:03.987654321 UTC' late || touch late
        """);

    for (String path :
        List.of("d", "d/f", "d/g", "link", "dangling", "empty", "sparse", "old", "late")) {
      assertAsTheSystemSays(path);
    }
    assertThat(store.status(name("old")).attributes().modificationTime())
        .isEqualTo(Instant.parse("1969-12-31T23:59:58.123456789Z"));
    assertThat(store.status(name("d/f")).identity())
        .isEqualTo(store.status(name("d/g")).identity());
  }

  @Test
  void status_root_isTheDirectory() throws Exception {
    assertAsTheSystemSays("");
  }

  @Test
  void status_ownersAndDevices_areTheFiles() throws Exception {
    assumeTrue(LibC.INSTANCE.geteuid() == 0, "making devices and giving files away needs root");
    Shell.run(
        root,
        """
        mknod null c 1 3; mknod wide b 259 70000; mkfifo fifo
        : > given; chown 4000000000:3000000000 given
        """);

    Attributes given = store.status(name("given")).attributes();
    assertThat(Integer.toUnsignedLong(given.uid())).isEqualTo(4_000_000_000L);
    assertThat(Integer.toUnsignedLong(given.gid())).isEqualTo(3_000_000_000L);
    assertThat(store.status(name("null")).attributes().device()).isEqualTo((1 << 8) | 3);
    assertThat(store.status(name("wide")).attributes().device())
        .isEqualTo(Files.getAttribute(root.resolve("wide"), "unix:rdev"));
    assertThat(store.status(name("null")).attributes().type()).isEqualTo(FileType.CHARACTER_DEVICE);
    assertThat(store.status(name("wide")).attributes().type()).isEqualTo(FileType.BLOCK_DEVICE);
    assertThat(store.status(name("fifo")).attributes().type()).isEqualTo(FileType.FIFO);
  }

  @Test
  void status_fileOnAnotherFileSystem_hasItsDevice() throws Exception {
    assumeTrue(LibC.INSTANCE.geteuid() == 0, "mounting needs root");
    Shell.run(root, "mkdir m; mount -t tmpfs -o size=1m pmfs-test m; echo x > m/f");
    try {
      SourceStatus status = store.status(name("m/f"));
      assertThat(status.identity().device())
          .isEqualTo(Files.getAttribute(root.resolve("m/f"), "unix:dev"));
    } finally {
      Shell.run(root, "umount m");
    }
  }

  // Names.

  @Test
  void list_namesThatAreNotText_areTheirBytes() throws Exception {
    Shell.run(root, "echo 1 > $'\\xff\\xfe'; echo 22 > $'a\\nb c'; mkdir $'\\x80'; : > $'\\x80'/f");
    FileName odd = FileName.of(new byte[] {(byte) 0xff, (byte) 0xfe});
    FileName directory = FileName.of(new byte[] {(byte) 0x80});

    assertThat(list(name(""))).containsExactlyInAnyOrder(odd, name("a\nb c"), directory);
    assertThat(store.status(odd).attributes().size()).isEqualTo(2);
    assertThat(store.status(name("a\nb c")).attributes().size()).isEqualTo(3);
    assertThat(list(directory)).containsExactly(name("f"));
    try (SourceFile file = store.open(odd)) {
      ByteBuffer content = ByteBuffer.allocateDirect(10);
      assertThat(file.read(0, content)).isEqualTo(2);
    }
  }

  @Test
  void list_emptyDirectory_isEmpty() throws Exception {
    Files.createDirectory(root.resolve("d"));

    assertThat(list(name("d"))).isEmpty();
  }

  @Test
  void list_tenThousandNames_hasEachOnce() throws Exception {
    Shell.run(root, "mkdir d; cd d; for i in {1..10000}; do : > name-$i; done; mkdir .hidden ...");
    List<FileName> names = list(name("d"));

    Set<FileName> expected = new HashSet<>(List.of(name(".hidden"), name("...")));
    for (int i = 1; i <= 10_000; i++) {
      expected.add(name("name-" + i));
    }
    assertThat(names).hasSize(10_002);
    assertThat(new HashSet<>(names)).isEqualTo(expected);
  }

  @Test
  void list_consumerHasEnough_isNotReadOn() throws Exception {
    for (int i = 0; i < 5000; i++) {
      write("file-%05d".formatted(i), 0);
    }
    AtomicInteger names = new AtomicInteger();
    store.list(
        name(""),
        batch -> {
          names.addAndGet(batch.size());
          return false;
        });
    assertThat(names.get()).isBetween(1, 4999);
    assertThat(list(name(""))).hasSize(5000);
  }

  @Test
  void list_consumerThrows_closesTheDirectory() throws Exception {
    write("f", 1);
    long before = openFiles();
    for (int i = 0; i < 20; i++) {
      assertThat(
              catchThrowableOfType(
                  IllegalStateException.class,
                  () ->
                      store.list(
                          name(""),
                          names -> {
                            throw new IllegalStateException("enough");
                          })))
          .isNotNull();
    }
    assertThat(openFiles()).isLessThan(before + 10);
  }

  private static long openFiles() throws IOException {
    try (var files = Files.list(Path.of("/proc/self/fd"))) {
      return files.count();
    }
  }

  @Test
  void operations_hundredLevelsOfLongestNames_goBeyondPathMax() throws Exception {
    Shell.run(
        root,
        """
        name=$(printf 'x%.0s' {1..255})
        for i in {1..100}; do mkdir $name; cd $name; done
        echo content > f; ln -s target l
        """);
    FileName level = name("x".repeat(255));
    FileName path = level;
    for (int depth = 1; depth <= 100; depth++) {
      assertThat(store.status(path).attributes().type()).isEqualTo(FileType.DIRECTORY);
      if (depth < 100) {
        assertThat(list(path)).containsExactly(level);
        path = path.resolve(level);
      }
    }
    long before = openFiles();
    FileName file = path.resolve(name("f"));
    assertThat(list(path)).containsExactlyInAnyOrder(name("f"), name("l"));
    assertThat(store.status(file).attributes().size()).isEqualTo(8);
    assertThat(store.readSymbolicLink(path.resolve(name("l")))).isEqualTo(name("target"));
    try (SourceFile open = store.open(file)) {
      ByteBuffer content = ByteBuffer.allocateDirect(8);
      assertThat(open.read(0, content)).isEqualTo(8);
    }
    FileName missing = path.resolve(name("none"));
    assertThat(errnoOf(() -> store.status(missing))).isEqualTo(Errno.ENOENT);
    assertThat(errnoOf(() -> store.status(file.resolve(name("x"))))).isEqualTo(Errno.ENOTDIR);
    assertThat(openFiles()).isLessThanOrEqualTo(before + 2);
    Shell.run(root, "rm -r x*");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 255, 3999, 4000, 4001, 4094})
  void status_pathsAroundAStep_areResolved(int size) throws Exception {
    StringBuilder path = new StringBuilder();
    while (path.length() < size) {
      int left = size - path.length();
      int take = left <= 201 ? left : left == 202 ? 100 : 200;
      path.append("n".repeat(take));
      if (path.length() < size) {
        path.append('/');
      }
    }
    String text = path.toString();
    assertThat(text).hasSize(size).doesNotEndWith("/");
    // Relative to the working directory, because the whole path may exceed the system's limit.
    Shell.run(root, "mkdir -p '" + text + "'");

    assertThat(store.status(name(text)).attributes().type()).isEqualTo(FileType.DIRECTORY);
    assertThat(list(name(text))).isEmpty();
    Shell.run(root, "rm -r n*");
  }

  @Test
  void status_nameOf256Bytes_isEnametoolong() {
    assertThat(errnoOf(() -> store.status(name("x".repeat(256))))).isEqualTo(Errno.ENAMETOOLONG);
    assertThat(errnoOf(() -> store.status(name("x".repeat(5000))))).isEqualTo(Errno.ENAMETOOLONG);
  }

  // Symbolic links.

  @ParameterizedTest
  @ValueSource(ints = {1, 59, 60, 61, 4095})
  void readSymbolicLink_anyLength_isTheTarget(int size) throws Exception {
    String target = "t".repeat(size);
    Files.createSymbolicLink(root.resolve("l"), Path.of(target));

    assertThat(store.readSymbolicLink(name("l"))).isEqualTo(name(target));
    assertThat(store.status(name("l")).attributes().size()).isEqualTo(size);
  }

  @Test
  void readSymbolicLink_noLink_isEinval() throws Exception {
    write("f", 1);

    assertThat(errnoOf(() -> store.readSymbolicLink(name("f")))).isEqualTo(Errno.EINVAL);
  }

  // Contents.

  @ParameterizedTest
  @CsvSource({"0, 100", "99, 1", "99, 2", "100, 10", "50, 1000", "5000000000, 1", "0, 0"})
  void read_range_endsAtTheEndOfTheFile(long offset, int size) throws Exception {
    byte[] content = write("f", 100);
    try (SourceFile file = store.open(name("f"))) {
      ByteBuffer destination = ByteBuffer.allocateDirect(size);
      int expected = (int) Math.max(0, Math.min(size, 100 - offset));

      assertThat(file.read(offset, destination)).isEqualTo(expected);
      assertThat(destination.position()).isEqualTo(expected);
      for (int i = 0; i < expected; i++) {
        assertThat(destination.get(i)).isEqualTo(content[(int) offset + i]);
      }
    }
  }

  @Test
  void read_intoTheMiddleOfABuffer_fillsJustThat() throws Exception {
    byte[] content = write("f", 1000);
    ByteBuffer whole = ByteBuffer.allocateDirect(300);
    ByteBuffer slice = whole.slice(50, 200).position(20).limit(120);
    try (SourceFile file = store.open(name("f"))) {
      assertThat(file.read(500, slice)).isEqualTo(100);
    }

    assertThat(slice.position()).isEqualTo(120);
    for (int i = 0; i < 300; i++) {
      byte expected = i >= 70 && i < 170 ? content[500 + i - 70] : 0;
      assertThat(whole.get(i)).as("byte %d", i).isEqualTo(expected);
    }
  }

  @Test
  void read_beyondFourGigabytes_isThere() throws Exception {
    Shell.run(root, "truncate -s 5G f; printf end >> f");
    try (SourceFile file = store.open(name("f"))) {
      ByteBuffer destination = ByteBuffer.allocateDirect(10);
      assertThat(file.read(5L << 30, destination)).isEqualTo(3);
      byte[] got = new byte[3];
      destination.flip().get(got);
      assertThat(got).isEqualTo("end".getBytes(UTF_8));
      assertThat(file.status().attributes().size()).isEqualTo((5L << 30) + 3);
    }
  }

  @Test
  void read_manyThreadsOneFile_eachGetsItsRange() throws Exception {
    byte[] content = write("f", 3_000_000);
    ExecutorService threads = Executors.newFixedThreadPool(8);
    try (SourceFile file = store.open(name("f"))) {
      List<Future<?>> running = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        Random random = new Random(i);
        running.add(
            threads.submit(
                () -> {
                  ByteBuffer destination = ByteBuffer.allocateDirect(100_000);
                  for (int round = 0; round < 100; round++) {
                    int offset = random.nextInt(2_900_000);
                    destination.clear();
                    assertThat(file.read(offset, destination)).isEqualTo(100_000);
                    assertThat(destination.flip())
                        .isEqualTo(ByteBuffer.wrap(content, offset, 100_000));
                  }
                  return true;
                }));
      }
      for (Future<?> one : running) {
        one.get(30, TimeUnit.SECONDS);
      }
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void lend_isTheFileItself_andOutlivesIt() throws Exception {
    Files.write(root.resolve("lent"), new byte[] {1, 2, 3});
    assertThat(store.lends()).isTrue();
    LentFile lent;
    try (SourceFile file = store.open(FileName.of("lent"))) {
      lent = Objects.requireNonNull(file.lend());
      assertThat(lent.descriptor()).isNotEqualTo(file.descriptor());
    }
    assertThat(lent.isCopy()).isFalse();
    ByteBuffer read = ByteBuffer.allocateDirect(4);
    assertThat(PassedFile.read(lent.descriptor(), FileName.of("lent"), 1, read)).isEqualTo(2);
    lent.closeDescriptor();
    lent.close();
  }

  @Test
  void read_directory_isEisdir() throws Exception {
    Files.createDirectory(root.resolve("d"));
    try (SourceFile file = store.open(name("d"))) {
      assertThat(errnoOf(() -> file.read(0, ByteBuffer.allocateDirect(10))))
          .isEqualTo(Errno.EISDIR);
    }
  }

  @Test
  void open_fifoNobodyWritesTo_returns() throws Exception {
    Shell.run(root, "mkfifo p");
    try (SourceFile file = store.open(name("p"))) {
      assertThat(file.status().attributes().type()).isEqualTo(FileType.FIFO);
    }
  }

  @Test
  void open_symbolicLink_isEloop() throws Exception {
    write("f", 1);
    Files.createSymbolicLink(root.resolve("l"), Path.of("f"));

    assertThat(errnoOf(() -> store.open(name("l")))).isEqualTo(Errno.ELOOP);
  }

  @Test
  void status_openFileReplaced_isStillTheOpenOne() throws Exception {
    write("f", 10);
    SourceStatus before = store.status(name("f"));
    try (SourceFile file = store.open(name("f"))) {
      write("g", 20);
      Files.move(
          root.resolve("g"), root.resolve("f"), java.nio.file.StandardCopyOption.REPLACE_EXISTING);

      assertThat(file.status().identity()).isEqualTo(before.identity());
      assertThat(file.status().attributes().linkCount()).isZero();
      assertThat(store.status(name("f")).identity()).isNotEqualTo(before.identity());
    }
  }

  // Extended attributes.

  @Test
  void extendedAttributes_ofFilesAndDirectories_areAllOfThem() throws Exception {
    write("f", 1);
    Files.createDirectory(root.resolve("d"));
    byte[] large = new byte[2000];
    new Random(1).nextBytes(large);
    try {
      UserDefinedFileAttributeView view =
          Files.getFileAttributeView(root.resolve("f"), UserDefinedFileAttributeView.class);
      view.write("label", ByteBuffer.wrap("cat".getBytes(UTF_8)));
      view.write("large", ByteBuffer.wrap(large));
      view.write("none", ByteBuffer.wrap(new byte[0]));
      for (Path directory : List.of(root, root.resolve("d"))) {
        Files.getFileAttributeView(directory, UserDefinedFileAttributeView.class)
            .write("dir", ByteBuffer.wrap(new byte[] {0, 1}));
      }
    } catch (FileSystemException e) {
      assumeTrue(false, "this file system keeps no extended attributes: " + e.getMessage());
    }

    Map<FileName, byte[]> attributes = store.extendedAttributes(name("f"));
    assertThat(attributes)
        .containsOnlyKeys(name("user.label"), name("user.large"), name("user.none"));
    assertThat(attributes.get(name("user.label"))).isEqualTo("cat".getBytes(UTF_8));
    assertThat(attributes.get(name("user.large"))).isEqualTo(large);
    assertThat(attributes.get(name("user.none"))).isEmpty();
    for (String directory : List.of("", "d")) {
      assertThat(store.extendedAttributes(name(directory)).get(name("user.dir")))
          .isEqualTo(new byte[] {0, 1});
    }
  }

  @Test
  void extendedAttributes_none_isEmpty() throws Exception {
    write("f", 1);
    Files.createSymbolicLink(root.resolve("dangling"), Path.of("none"));

    assertThat(store.extendedAttributes(name("f"))).isEmpty();
    assertThat(store.extendedAttributes(name("dangling"))).isEmpty();
    assertThat(errnoOf(() -> store.extendedAttributes(name("none")))).isEqualTo(Errno.ENOENT);
  }

  @Test
  void extendedAttributes_rootRenamedOrPathBeyondPathMax_areRead() throws Exception {
    Path before = Files.createDirectory(root.resolve("before"));
    try (DirectoryStore renamed = open(before)) {
      FileName path = name("x".repeat(250));
      Shell.run(
          before,
          """
          name=$(printf 'x%.0s' {1..250})
          for i in {1..20}; do mkdir $name; cd $name; done
          """);
      for (int depth = 1; depth < 20; depth++) {
        path = path.resolve(name("x".repeat(250)));
      }
      Files.move(before, root.resolve("after"));

      assertThat(renamed.extendedAttributes(name(""))).isEmpty();
      assertThat(renamed.extendedAttributes(path)).isEmpty();
    } finally {
      Shell.run(root, "rm -r after");
    }
  }

  // Failures and the rest.

  @Test
  void operations_missingNames_areEnoent() {
    FileName missing = name("none");
    assertThat(errnoOf(() -> store.status(missing))).isEqualTo(Errno.ENOENT);
    assertThat(errnoOf(() -> store.open(missing))).isEqualTo(Errno.ENOENT);
    assertThat(errnoOf(() -> list(missing))).isEqualTo(Errno.ENOENT);
    assertThat(errnoOf(() -> store.readSymbolicLink(missing))).isEqualTo(Errno.ENOENT);
    assertThat(errnoOf(() -> open(root.resolve("none")))).isEqualTo(Errno.ENOENT);
  }

  @Test
  void operations_belowAFile_areEnotdir() throws Exception {
    write("f", 1);
    assertThat(errnoOf(() -> store.status(name("f/x")))).isEqualTo(Errno.ENOTDIR);
    assertThat(errnoOf(() -> list(name("f")))).isEqualTo(Errno.ENOTDIR);
    assertThat(errnoOf(() -> open(root.resolve("f")))).isEqualTo(Errno.ENOTDIR);
  }

  @Test
  void list_symbolicLinkToADirectory_isNotFollowed() throws Exception {
    Files.createDirectory(root.resolve("d"));
    Files.createSymbolicLink(root.resolve("l"), Path.of("d"));

    assertThat(errnoOf(() -> list(name("l")))).isIn(Errno.ENOTDIR, Errno.ELOOP);
  }

  @Test
  void operations_throughADirectoryReplacedByALink_leadNowhere() throws Exception {
    Shell.run(
        root,
        """
        mkdir -p outside/e d/e
        echo secret >outside/e/secret; ln -s target outside/e/link
        chmod 700 outside
        mv d moved; ln -s "$PWD/outside" d
        """);
    FileName directory = name("d/e");
    FileName secret = name("d/e/secret");

    assertThat(errnoOf(() -> list(directory))).isEqualTo(Errno.ENOTDIR);
    assertThat(errnoOf(() -> store.status(directory))).isEqualTo(Errno.ENOTDIR);
    assertThat(errnoOf(() -> store.status(secret))).isEqualTo(Errno.ENOTDIR);
    assertThat(errnoOf(() -> store.open(secret))).isEqualTo(Errno.ENOTDIR);
    assertThat(errnoOf(() -> store.extendedAttributes(secret))).isEqualTo(Errno.ENOTDIR);
    assertThat(errnoOf(() -> store.readSymbolicLink(name("d/e/link")))).isEqualTo(Errno.ENOTDIR);
  }

  @Test
  void status_ofANameWhileItsDirectoryIsListed_isOfThatDirectory() throws Exception {
    Shell.run(root, "mkdir d other; echo four >d/f; echo seven77 >other/f; echo x >outside");
    List<Long> sizes = new ArrayList<>();
    store.list(
        name("d"),
        names -> {
          try {
            Shell.run(root, "mv d moved; ln -s other d");
            sizes.add(store.status(name("d/f")).attributes().size());
          } catch (IOException | FsException e) {
            throw new AssertionError(e);
          }
          assertThat(errnoOf(() -> store.status(name("d/..")))).isEqualTo(Errno.EXDEV);
          assertThat(errnoOf(() -> store.status(name("d/none")))).isEqualTo(Errno.ENOENT);
          return true;
        });

    assertThat(sizes).containsExactly(5L);
    assertThat(errnoOf(() -> store.status(name("d/f")))).isEqualTo(Errno.ENOTDIR);
  }

  @ParameterizedTest
  @ValueSource(strings = {"..", "d/..", "d/../../x", "/etc/passwd", "../" + "x"})
  void operations_pathThatLeadsOut_areExdev(String path) throws Exception {
    Files.createDirectory(root.resolve("d"));

    assertThat(errnoOf(() -> list(name(path)))).isEqualTo(Errno.EXDEV);
    assertThat(errnoOf(() -> store.status(name(path)))).isEqualTo(Errno.EXDEV);
    assertThat(errnoOf(() -> store.open(name(path)))).isEqualTo(Errno.EXDEV);
    assertThat(errnoOf(() -> store.extendedAttributes(name(path)))).isEqualTo(Errno.EXDEV);
    assertThat(errnoOf(() -> store.readSymbolicLink(name(path)))).isEqualTo(Errno.EXDEV);
  }

  @Test
  void operations_belowAnotherMount_areServed() throws Exception {
    assumeTrue(LibC.INSTANCE.geteuid() == 0, "only root can mount");
    Files.createDirectory(root.resolve("other"));
    Shell.run(root, "mount -t tmpfs none other; mkdir other/d; echo x >other/d/f");
    try {
      assertThat(list(name("other/d"))).containsExactly(name("f"));
      assertThat(store.status(name("other/d/f")).identity().device()).isNotZero();
      store.open(name("other/d/f")).close();
    } finally {
      Shell.run(root, "umount other");
    }
  }

  @Test
  void operations_whileADirectoryIsSwapped_neverLeadOut() throws Exception {
    Shell.run(root, "mkdir -p d/e outside/e; echo inside >d/e/f; echo SECRET-SECRET >outside/e/f");
    AtomicBoolean ends = new AtomicBoolean();
    ExecutorService thread = Executors.newSingleThreadExecutor();
    Future<?> swapper =
        thread.submit(
            () -> {
              Path shown = root.resolve("d");
              Path kept = root.resolve("kept");
              while (!ends.get()) {
                Files.move(shown, kept);
                Files.createSymbolicLink(shown, Path.of("outside"));
                Files.delete(shown);
                Files.move(kept, shown);
              }
              return null;
            });
    try {
      // Limited by time: on a busy machine the other thread may stop while the directory has no
      // name.
      long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
      for (int answers = 0; answers < 200; ) {
        assertThat(System.nanoTime() - end).as("%d answers", answers).isNegative();
        try {
          assertThat(store.status(name("d/e/f")).attributes().size()).isEqualTo(7);
          answers++;
        } catch (FsException e) {
          assertThat(e.errno()).isIn(Errno.ENOENT, Errno.ENOTDIR);
        }
      }
    } finally {
      ends.set(true);
      thread.shutdown();
    }
    swapper.get();
  }

  @Test
  void operations_withoutPermission_areEacces() throws Exception {
    write("secret", 1);
    Files.createDirectory(root.resolve("closed"));
    write("closed/f", 1);
    Shell.run(root, "chmod 0 secret closed");
    try {
      assumeTrue(LibC.INSTANCE.geteuid() != 0, "root may read everything: needs an ordinary user");
      assertThat(errnoOf(() -> store.open(name("secret")))).isEqualTo(Errno.EACCES);
      assertThat(errnoOf(() -> list(name("closed")))).isEqualTo(Errno.EACCES);
      assertThat(errnoOf(() -> store.status(name("closed/f")))).isEqualTo(Errno.EACCES);
    } finally {
      Shell.run(root, "chmod 700 closed");
    }
  }

  @Test
  void statistics_areAsTheSystemSays() throws Exception {
    StoreStatistics statistics = store.statistics();
    String[] expected = Shell.run(root, "stat -f -c '%s %S %b %c %l' .").split(" ", -1);

    assertThat(statistics.blockSize()).isEqualTo(Long.parseLong(expected[0]));
    assertThat(statistics.fragmentSize()).isEqualTo(Long.parseLong(expected[1]));
    assertThat(statistics.blocks()).isEqualTo(Long.parseLong(expected[2]));
    assertThat(statistics.files()).isEqualTo(Long.parseLong(expected[3]));
    assertThat(statistics.nameMaximum()).isEqualTo(Long.parseLong(expected[4]));
    assertThat(statistics.blocksFree()).isBetween(1L, statistics.blocks());
    assertThat(statistics.blocksAvailable()).isBetween(0L, statistics.blocksFree());
    assertThat(statistics.filesFree()).isBetween(1L, statistics.files());
  }

  @Test
  void operations_rootRenamed_goOn() throws Exception {
    Path before = Files.createDirectory(root.resolve("before"));
    write("before/f", 10);
    try (DirectoryStore renamed = open(before)) {
      Files.move(before, root.resolve("after"));

      assertThat(renamed.status(name("f")).attributes().size()).isEqualTo(10);
      List<FileName> names = new ArrayList<>();
      renamed.list(name(""), names::addAll);
      assertThat(names).containsExactly(name("f"));
      try (SourceFile file = renamed.open(name("f"))) {
        assertThat(file.read(0, ByteBuffer.allocateDirect(10))).isEqualTo(10);
      }
    }
  }

  @Test
  void operations_manyTimes_leaveNoFileOpen() throws Exception {
    write("f", 10);
    long before = openFiles();
    for (int i = 0; i < 50; i++) {
      store.open(name("f")).close();
      list(name(""));
      assertThat(errnoOf(() -> store.open(name("none")))).isEqualTo(Errno.ENOENT);
    }
    assertThat(openFiles()).isLessThan(before + 10);
  }

  @Test
  void seek_inASparseFile_findsDataAndHoles() throws Exception {
    Shell.run(root, "truncate -s 8M sparse; printf x | dd of=sparse bs=1 seek=3M conv=notrunc");
    try (SourceFile file = store.open(name("sparse"))) {
      long data = file.seekData(0);
      org.junit.jupiter.api.Assumptions.assumeTrue(data > 0, "no holes on this file system");
      assertThat(data).isLessThanOrEqualTo(3 << 20);
      assertThat(file.seekHole(0)).isZero();
      assertThat(file.seekHole(3 << 20)).isBetween((3L << 20) + 1, 8L << 20);
      assertThat(errnoOf(() -> file.seekData(4 << 20))).isEqualTo(Errno.ENXIO);
      assertThat(errnoOf(() -> file.seekHole(8 << 20))).isEqualTo(Errno.ENXIO);
    }
  }
}
