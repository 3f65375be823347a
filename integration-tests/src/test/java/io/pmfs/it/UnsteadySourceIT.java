package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fuse.system.PassedFile;
import io.pmfs.posix.Await;
import io.pmfs.posix.FsException;
import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Sources that do not give what a file system on a disk does: numbers change, times are coarse,
 * calls are interrupted, and single files cannot be described.
 */
final class UnsteadySourceIT {
  private static final int FILES = 40;
  private static final int SIZE = 20_000;
  private static final String EACH_ALONE = "interrupted calls of each operation alone";

  @Installed private Installation pmfs;

  private Path real;
  private Dataset dataset;
  private NodeView view;

  @BeforeEach
  void makeSource() throws IOException {
    Machine.requireFuse();
    Machine.requireRoot();
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(FILES, SIZE));
    Path root = dataset.root();
    Files.createLink(root.resolve("linked"), root.resolve(dataset.items().get(0).name()));
    Files.createSymbolicLink(root.resolve("link"), Path.of("linked"));
    real = pmfs.directory("real");
    Command.run("mount", "--bind", "--make-private", root.toString(), real.toString()).expect(0);
    view = new NodeView(root);
  }

  @AfterEach
  void unmount() {
    if (view != null) {
      view.close();
    }
    Command.run("umount", "-l", real.toString());
  }

  private void assertEqual(MountedPmfs mount) {
    Command.run("diff", "-r", "--no-dereference", real.toString(), mount.mountpoint().toString())
        .expect(0);
  }

  @Test
  @OnRequest("cases")
  void numbers_changeWhileMountedAndBetweenMounts_filesAreReadOnce() throws IOException {
    view.keepLittle();
    assertReadOnceWhileNumbersChange();
  }

  @Test
  @OnRequest(value = "modes", what = "changing inode numbers of a source that keeps all else")
  void numbers_changeAndAllElseIsKept_filesAreReadOnce() throws IOException {
    assertReadOnceWhileNumbersChange();
  }

  private void assertReadOnceWhileNumbersChange() throws IOException {
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      Command.run("ls", "-lR", mount.mountpoint().toString()).expect(0);
      view.renumber(0x155);
      assertEqual(mount);
      mount.awaitCopies(FILES);
      assertThat(mount.status().number("renumberedFiles")).isPositive();
      assertThat(mount.status().number("reads.errors")).isZero();
      assertThat(pmfs.run("status", mount.mountpoint().toString()).expect(0).out())
          .contains("they change at the source");
    }
    view.renumber(0x2aa);
    long opens = opens();
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      assertEqual(mount);
      Status status = mount.status();
      assertThat(status.number("sourceOperations.reads")).as("%s", status).isZero();
      assertThat(opens()).isEqualTo(opens);

      // A file that was replaced is noticed.
      Path file = real.resolve(dataset.items().get(1).name());
      assertThat(pmfs.run("doctor", mount.mountpoint().toString()).out())
          .contains("inode numbers", "they change at the source");
      byte[] other = new byte[SIZE];
      new Random(1).nextBytes(other);
      Files.delete(file);
      Files.write(file, other);
    }
    view.renumber(0x3ff);
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      assertEqual(mount);
      assertThat(mount.status().number("sourceOperations.bytes")).isEqualTo(SIZE);
    }
  }

  /** The node's cache keeps no copies of such files, unless they have change times of their own. */
  @Test
  @OnRequest("cases")
  void file_servedByAProgram_isKnownAsSuch() throws FsException {
    String name = dataset.items().get(0).name();
    try (PassedFile shown = PassedFile.open(dataset.root().resolve(name));
        PassedFile file = PassedFile.open(real.resolve(name))) {
      assertThat(shown.isServedByProgram()).isTrue();
      assertThat(file.isServedByProgram()).isFalse();
    }
  }

  private long opens() {
    return view.counts().values().stream().mapToLong(NodeView.Counts::opens).sum();
  }

  @Test
  void file_beyondDescription_spoilsNoOtherAndHasItsErrorEachTime() throws IOException {
    String bad = dataset.items().get(3).name();
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      view.fail(SourceView.Operation.STAT, bad);
      Path directory = mount.mountpoint().resolve(bad).resolveSibling(".");
      assertThat(Command.run("ls", directory.toString()).expect(0).out().lines()).hasSize(10);
      for (Dataset.Item item : dataset.items()) {
        if (!item.name().equals(bad)) {
          Dataset.assertEqualBelow(mount.mountpoint(), item);
        }
      }
      for (int i = 0; i < 3; i++) {
        assertThat(Posix.outcome(Posix.readByte(mount.path(bad)))).isEqualTo("EIO");
      }
      Command staged = pmfs.run("stage", mount.mountpoint().toString()).expect(4);
      assertThat(staged.out() + staged.err()).contains(bad);
      Command status = pmfs.run("status", mount.mountpoint().toString()).expect(4);
      assertThat(status.out())
          .contains("requests of readers failed", "lookup of /" + bad + ": EIO");
      assertThat(status.err()).contains("requests of readers failed");

      view.mend();
      assertEqual(mount);
      pmfs.run("stage", mount.mountpoint().toString()).expect(0);
    }
  }

  @Test
  void calls_interruptedOrToBeMadeAgain_areMadeAgain() throws IOException {
    assertReadWhileInterrupted(EnumSet.allOf(SourceView.Operation.class));
  }

  @ParameterizedTest
  @EnumSource(SourceView.Operation.class)
  @OnRequest(value = "modes", what = EACH_ALONE)
  void calls_ofOneOperationInterrupted_areMadeAgain(SourceView.Operation operation)
      throws IOException {
    assertReadWhileInterrupted(Set.of(operation));
  }

  private void assertReadWhileInterrupted(Set<SourceView.Operation> operations) throws IOException {
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      operations.forEach(view::interrupt);
      assertEqual(mount);
      pmfs.run("stage", mount.mountpoint().toString()).expect(0);
      assertThat(mount.status().number("reads.errors")).isZero();
    }
  }

  private static Set<Posix.Entry> listed(Path directory) {
    return Posix.list(directory.toString()).stream()
        .filter(entry -> !entry.name().startsWith("."))
        .map(entry -> new Posix.Entry(entry.name(), entry.type(), 0))
        .collect(Collectors.toSet());
  }

  /** Many file systems say what a name is only when they are asked for its attributes. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void listings_withoutTypes_showNoWrongOnes(boolean isWritable) {
    assertTypesAreRight(false, isWritable);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  @OnRequest(value = "modes", what = "listings with types, as the sources of most tests have them")
  void listings_withTypes_showNoWrongOnes(boolean isWritable) {
    assertTypesAreRight(true, isWritable);
  }

  private void assertTypesAreRight(boolean hasTypes, boolean isWritable) {
    if (hasTypes) {
      view.listTypes();
    }
    Set<Posix.Entry> expected = listed(real);
    assertThat(listed(dataset.root()).equals(expected)).isEqualTo(hasTypes);
    String[] options = isWritable ? new String[] {"--writable"} : new String[0];
    try (MountedPmfs mount = pmfs.mount(dataset.root(), options)) {
      Set<Posix.Entry> shown = listed(mount.mountpoint());
      if (isWritable && !hasTypes) {
        // It does not look for them: a program that needs one asks for the attributes.
        assertThat(shown).hasSameSizeAs(expected);
        shown.removeIf(entry -> entry.type() == 0);
        assertThat(expected).containsAll(shown);
      } else {
        assertThat(shown).isEqualTo(expected);
      }
      assertEqual(mount);
      String find = "cd \"$1\" && find . -printf '%P %y\\n' | sort";
      assertThat(Command.run("sh", "-c", find, "-", mount.mountpoint().toString()).out())
          .isEqualTo(Command.run("sh", "-c", find, "-", real.toString()).expect(0).out());
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void reads_shorterThanAskedFor_areContinued(boolean isWritable) throws IOException {
    Requested.assume("cases", !isWritable, "");
    byte[] large = new byte[5 << 20];
    new Random(2).nextBytes(large);
    Files.write(real.resolve("large"), large);
    view.readShort();
    String[] options = isWritable ? new String[] {"--writable"} : new String[0];
    try (MountedPmfs mount = pmfs.mount(dataset.root(), options)) {
      assertEqual(mount);
      if (isWritable) {
        // What the change leaves as it was comes from the source.
        byte[] changed = Arrays.copyOf(large, large.length - 1000);
        changed[3 << 20]++;
        try (FileChannel file =
            FileChannel.open(mount.mountpoint().resolve("large"), StandardOpenOption.WRITE)) {
          file.truncate(changed.length);
          file.write(ByteBuffer.wrap(changed, 3 << 20, 1), 3 << 20);
        }
        pmfs.run("drain", mount.mountpoint().toString()).expect(0);
        assertThat(real.resolve("large")).hasBinaryContent(changed);
        assertEqual(mount);
      } else {
        pmfs.run("stage", mount.mountpoint().toString()).expect(0);
        pmfs.run("verify", "--source", mount.mountpoint().toString()).expect(0);
        assertEqual(mount);
      }
      assertThat(mount.status().number("reads.errors")).isZero();
    }
  }

  /** Of a change that was interrupted it is not known whether it was made. */
  @Test
  @OnRequest("cases")
  void calls_ofAWritableMount_areMadeAgain() throws IOException {
    assertDrainedWhileInterrupted(EnumSet.complementOf(EnumSet.of(SourceView.Operation.STAT)));
  }

  @Test
  @OnRequest("cases")
  void calls_thatDescribeFilesOfAWritableMount_areMadeAgain() throws IOException {
    assertDrainedWhileInterrupted(Set.of(SourceView.Operation.STAT));
  }

  @ParameterizedTest
  @EnumSource(names = "STAT", mode = EnumSource.Mode.EXCLUDE)
  @OnRequest(value = "modes", what = EACH_ALONE)
  void calls_ofOneOperationOfAWritableMount_areMadeAgain(SourceView.Operation operation)
      throws IOException {
    assertDrainedWhileInterrupted(Set.of(operation));
  }

  private void assertDrainedWhileInterrupted(Set<SourceView.Operation> operations)
      throws IOException {
    try (MountedPmfs mount = pmfs.mount(dataset.root(), "--writable")) {
      operations.forEach(view::interrupt);
      Path top = mount.mountpoint();
      assertEqual(mount);
      for (int i = 0; i < 10; i++) {
        Path directory = Files.createDirectory(top.resolve("d" + i));
        Path file = directory.resolve("old");
        Files.writeString(file, "text " + i + "\n");
        Files.writeString(directory.resolve("gone"), "text");
        Files.createSymbolicLink(directory.resolve("link"), Path.of("new"));
        Files.move(file, directory.resolve("new"));
        Files.setPosixFilePermissions(
            directory.resolve("new"), PosixFilePermissions.fromString("rw-r-----"));
        Files.delete(directory.resolve("gone"));
        Dataset.Item item = dataset.items().get(i);
        Files.move(top.resolve(item.name()), directory.resolve("moved"));
        Files.writeString(directory.resolve("moved"), "more\n", StandardOpenOption.APPEND);
      }
      if (operations.contains(SourceView.Operation.STAT)) {
        // A file that was made and cannot be described then is made again, with all of its step.
        view.mend();
      }
      Await.until(
          () -> "drained: " + mount.status(),
          Duration.ofMinutes(1),
          () -> mount.status().number("outputs.waitingChanges") == 0);
      assertThat(mount.status().number("outputs.conflicts")).isZero();
      assertThat(mount.status().number("reads.errors")).isZero();
      view.mend();
      pmfs.run("drain", top.toString()).expect(0);
      assertEqual(mount);
      for (int i = 0; i < 10; i++) {
        Path directory = real.resolve("d" + i);
        assertThat(directory.resolve("new")).hasContent("text " + i + "\n");
        assertThat(
                PosixFilePermissions.toString(
                    Files.getPosixFilePermissions(directory.resolve("new"))))
            .isEqualTo("rw-r-----");
        assertThat(directory.resolve("gone")).doesNotExist();
        assertThat(directory.resolve("moved")).hasSize(SIZE + 5L);
      }
    }
  }
}
