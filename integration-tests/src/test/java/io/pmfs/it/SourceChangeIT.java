package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Sources that change between mounts, or fail while mounted. */
@ParameterizedClass
@EnumSource
final class SourceChangeIT {
  private static final int SIZE = 200_000;

  @Parameter BridgeMode mode;

  @Installed(inEveryRun = BridgeMode.JNR)
  private Installation pmfs;

  private Dataset dataset;

  @BeforeEach
  void makeSource() {
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(20, SIZE));
  }

  private void readAllOnce() {
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(dataset.items().size());
    }
  }

  private Path source(int index) {
    return dataset.root().resolve(dataset.items().get(index).name());
  }

  /** Compares names, types, attributes and contents; answers the mount's last status. */
  private Status assertEqualToSource() {
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      assertThat(listing(mount.mountpoint())).isEqualTo(listing(dataset.root()));
      Command.run(
              "diff",
              "-r",
              "--no-dereference",
              dataset.root().toString(),
              mount.mountpoint().toString())
          .expect(0);
      return mount.status();
    }
  }

  private static Set<String> listing(Path tree) {
    return Command.run("find", tree.toString(), "-printf", "%P %y %m %U %G %s %n %T@ %l\\n")
        .expect(0)
        .out()
        .lines()
        .collect(Collectors.toSet());
  }

  @Test
  void nothing_changed_noByteIsReadAgain() {
    readAllOnce();
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      Status status = mount.status();
      assertThat(status.number("sourceOperations.reads")).as("%s", status).isZero();
      mode.assertUsed(mount, dataset.items().get(0).name());
    }
  }

  @Test
  void file_ofNewSize_isServedNew() throws IOException {
    readAllOnce();
    Files.write(source(0), new byte[SIZE + 1]);
    Files.write(source(1), new byte[10]);
    Files.write(source(2), new byte[0]);
    Status status = assertEqualToSource();
    assertThat(status.number("sourceOperations.reads")).isPositive();
  }

  @Test
  @OnRequest("cases")
  void file_ofTheSameSizeAndNewTime_isServedNew() throws IOException {
    readAllOnce();
    FileTime was = Files.getLastModifiedTime(source(0));
    Files.write(source(0), new byte[SIZE]);
    // One nanosecond is a new version; an older time is one too.
    Files.setLastModifiedTime(source(0), FileTime.from(was.toInstant().plusNanos(1)));
    Files.write(source(1), new byte[SIZE]);
    Files.setLastModifiedTime(source(1), FileTime.from(was.toInstant().minusSeconds(86_400)));
    assertEqualToSource();
  }

  @Test
  @OnRequest("cases")
  void file_changedWithoutACopy_isServedNew() throws IOException {
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      assertThat(listing(mount.mountpoint())).hasSizeGreaterThan(20);
    }
    Files.write(source(0), new byte[SIZE / 2]);
    assertEqualToSource();
  }

  @Test
  void file_replacedByRename_isServedNew() throws IOException {
    readAllOnce();
    Path fresh = Files.write(pmfs.directory("elsewhere").resolve("fresh"), new byte[SIZE]);
    Files.move(fresh, source(0), java.nio.file.StandardCopyOption.REPLACE_EXISTING);
    assertEqualToSource();
  }

  @Test
  void directory_withFilesAddedRemovedAndRenamed_isListedNew() throws IOException {
    readAllOnce();
    Files.write(source(0).resolveSibling("added"), new byte[100]);
    Files.delete(source(1));
    Files.move(source(2), source(2).resolveSibling("renamed"));
    Files.move(source(3), source(13).resolveSibling("moved"));
    Path a = source(4).resolveSibling("swap");
    Files.move(source(4), a);
    Files.move(source(5), source(4));
    Files.move(a, source(5));
    assertEqualToSource();
  }

  @Test
  @OnRequest("cases")
  void directory_removedRenamedOrMadeAFile_isListedNew() throws IOException {
    Dataset nested = Dataset.create(dataset.root().resolve("nested"), Dataset.sizes(30, 1000));
    readAllOnce();
    Path root = nested.root();
    Files.move(root.resolve("part-000"), root.resolve("part-renamed"));
    Faults.delete(root.resolve("part-001"));
    Files.write(root.resolve("part-001"), new byte[7]);
    Faults.delete(root.resolve("part-002"));
    Files.createDirectory(root.resolve("part-003"));
    Files.createSymbolicLink(root.resolve("part-004"), Path.of("part-003"));
    assertEqualToSource();
  }

  @Test
  void attributes_changed_areShownNew() throws IOException {
    readAllOnce();
    Files.setPosixFilePermissions(
        source(0), java.nio.file.attribute.PosixFilePermissions.fromString("r--------"));
    Files.createLink(source(1).resolveSibling("link"), source(1));
    assertEqualToSource();
  }

  @Test
  void source_replacedByAnother_nothingOfTheFirstIsServed() throws IOException {
    readAllOnce();
    Files.move(dataset.root(), dataset.root().resolveSibling("old"));
    Dataset.create(dataset.root(), Dataset.sizes(10, SIZE + 5));
    assertEqualToSource();
  }

  @Test
  void file_removedWhileMountedBeforeItsFirstRead_failsWithTheSourcesErrno() throws IOException {
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      String file = mount.path(dataset.items().get(0).name());
      assertThat(Posix.stat(file).size()).isEqualTo(SIZE);
      Files.delete(source(0));
      assertThat(Posix.outcome(Posix.readByte(file))).isEqualTo("ENOENT");
      Dataset.assertEqualBelow(mount.mountpoint(), dataset.items().get(1));
      assertThat(mount.status().number("reads.errors")).isPositive();
    }
  }

  /** Of a directory whose names are known, and were compared with the source. */
  @Test
  void file_awayWhenItIsLookedUp_isThereOnceItIsBack() throws IOException {
    // What changed within the last two seconds is listed again in any case.
    Files.setLastModifiedTime(source(0).resolveSibling("."), FileTime.fromMillis(0));
    readAllOnce();
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      assertThat(Posix.stat(mount.path(dataset.items().get(1).name())).size()).isEqualTo(SIZE);
      String file = mount.path(dataset.items().get(0).name());
      Path away = pmfs.directory("away").resolve("file");
      Files.move(source(0), away);
      assertThat(Posix.outcome(Posix.readByte(file))).isIn("ENOENT", "ESTALE");
      Files.move(away, source(0));
      Dataset.assertEqualBelow(mount.mountpoint(), dataset.items().get(0));
    }
  }

  @Test
  void file_removedWhileMountedAfterStaging_isServedFromItsCopy() throws IOException {
    Machine.requireRoot();
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(dataset.items().size());
      Files.delete(source(0));
      Machine.forget(mount.mountpoint());
      Dataset.assertEqualBelow(mount.mountpoint(), dataset.items().get(0));
    }
  }
}
