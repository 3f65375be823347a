package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Sentences of docs/semantics.md that no other test checks. */
final class SemanticsIT {
  @Installed private Installation pmfs;
  private Dataset dataset;

  @BeforeEach
  void makeSource() {
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(30, 40_000));
  }

  private Status readAll(MountedPmfs mount) {
    dataset.assertEqualBelow(mount.mountpoint());
    return mount.awaitCopies(dataset.items().size());
  }

  // Inode numbers stay the same from one mount to the next.
  @Test
  void inodeNumbers_ofTwoMounts_areTheSame() {
    Map<String, Long> first = new HashMap<>();
    for (int round = 0; round < 2; round++) {
      try (MountedPmfs mount = pmfs.mount(dataset.root())) {
        for (Dataset.Item item : dataset.items()) {
          long ino = Posix.stat(mount.path(item.name())).ino();
          assertThat(first.merge(item.name(), ino, (was, is) -> was)).isEqualTo(ino);
        }
        assertThat(first.values()).doesNotHaveDuplicates();
      }
    }
  }

  // Copies survive unmount: the next mount serves them without reading the source.
  @Test
  void copies_afterUnmount_areServedWithoutTheSource() {
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      Status status = readAll(mount);
      assertThat(status.number("sourceOperations.reads")).isPositive();
    }
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      Status status = mount.status();
      assertThat(status.number("sourceOperations.reads")).as("%s", status).isZero();
      assertThat(status.number("sourceOperations.bytes")).as("%s", status).isZero();
    }
  }

  // A file that was read is copied whole, though only a part of it was read.
  @Test
  void file_readInPart_isCopiedWhole() {
    Dataset.Item item = dataset.items().get(0);
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      assertThat(Posix.pread(mount.path(item.name()), 1, 20_000)).hasSize(1);
      mount.awaitCopies(1);
      assertThat(Dataset.copyOf(item, pmfs.tier()).file()).isRegularFile();
    }
  }

  // What is only looked at is not copied: metadata on lookup, bytes on read.
  @Test
  void tree_onlyListed_isNotRead() {
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      Command.run("find", mount.mountpoint().toString(), "-printf", "%s %T@").expect(0);
      Status status = mount.awaitStagingIdle();
      assertThat(status.number("sourceOperations.lists")).isPositive();
      assertThat(status.number("sourceOperations.reads")).isZero();
      assertThat(status.number("tiers.0.copies")).isZero();
    }
  }

  // Without --allow-other only the mounting user gets in.
  @Test
  void mount_withoutAllowOther_letsNobodyElseIn() {
    Machine.requireRoot();
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      Command refused = OtherUser.run("ls", mount.mountpoint().toString());
      assertThat(refused.exit()).as("%s", refused).isNotEqualTo(0);
      assertThat(refused.err()).contains("Permission denied");
    }
  }

  // With --allow-other everybody reads what the source's modes let them.
  @Test
  void mount_withAllowOther_followsTheModes() throws IOException {
    Machine.requireRoot();
    Path secret = dataset.root().resolve(dataset.items().get(0).name());
    Files.setPosixFilePermissions(secret, PosixFilePermissions.fromString("rw-------"));
    try (MountedPmfs mount = pmfs.mount(dataset.root(), "--allow-other")) {
      // Root's own read stages it; the copy opens no way around the mode.
      readAll(mount);
      Command refused = OtherUser.run("cat", mount.path(dataset.items().get(0).name()));
      assertThat(refused.exit()).as("%s", refused).isNotEqualTo(0);
      assertThat(refused.err()).contains("Permission denied");
      OtherUser.run("cat", mount.path(dataset.items().get(1).name())).expect(0);
    }
  }

  // Tier files are 0600 in 0700 directories, whatever the umask.
  @Test
  void tier_isPrivate() throws IOException {
    Path tier = pmfs.scratch().root().resolve("made-by-pmfs");
    // Copies in a bundle, and then as files.
    for (String eviction : List.of("none", "lru")) {
      try (MountedPmfs mount =
          pmfs.mount(dataset.root(), "--tier", "ssd:" + tier, "--eviction", eviction)) {
        readAll(mount);
        mount.awaitCopies(dataset.items().size());
        String kind = eviction.equals("none") ? "/bundles/" : "/copies/";
        int least = eviction.equals("none") ? 1 : dataset.items().size();
        assertThat(Installation.files(tier))
            .filteredOn(file -> file.toString().contains(kind))
            .hasSizeGreaterThanOrEqualTo(least);
        assertPrivate(tier);
      }
      Installation.files(tier).forEach(Faults::delete);
    }
  }

  private static void assertPrivate(Path directory) throws IOException {
    List<String> open = new ArrayList<>();
    try (Stream<Path> walk = Files.walk(directory)) {
      for (Path path : (Iterable<Path>) walk::iterator) {
        String expected = Files.isDirectory(path) ? "rwx------" : "rw-------";
        if (!PosixFilePermissions.toString(Files.getPosixFilePermissions(path)).equals(expected)) {
          open.add(path + " " + Files.getPosixFilePermissions(path));
        }
      }
    }
    assertThat(open).isEmpty();
  }

  // The state and the control socket are private too.
  @Test
  void state_isPrivate() throws IOException {
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      readAll(mount);
      for (Path path : Installation.files(pmfs.state())) {
        assertPrivate(path, pmfs.state());
      }
      try (Stream<Path> runtime = Files.walk(pmfs.scratch().root().resolve("run"))) {
        for (Path path : (Iterable<Path>) runtime::iterator) {
          assertPrivate(path, pmfs.scratch().root());
        }
      }
    }
  }

  // Also where the directory that it lies in was there before, and is everybody's to read.
  @Test
  void state_inADirectoryOfOthers_isPrivate() throws IOException {
    Path open = pmfs.directory("shared-state");
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxr-xr-x"));
    try (MountedPmfs mount = pmfs.mount(dataset.root(), "--state-dir", open.toString())) {
      readAll(mount);
      List<Path> files = Installation.files(open);
      assertThat(files).isNotEmpty();
      for (Path path : files) {
        assertPrivate(path, open);
      }
    }
  }

  /** A file is private by its own mode or by that of a directory above it. */
  private static void assertPrivate(Path path, Path below) throws IOException {
    for (Path p = path; p != null && p.startsWith(below); p = p.getParent()) {
      if (PosixFilePermissions.toString(Files.getPosixFilePermissions(p)).endsWith("------")) {
        return;
      }
    }
    throw new AssertionError("others get to " + path);
  }

  // The source is only read: nothing in it changes.
  @Test
  void source_afterEverything_isUntouched() {
    String before = listing(dataset.root());
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      readAll(mount);
    }
    assertThat(listing(dataset.root())).isEqualTo(before);
  }

  private static String listing(Path tree) {
    return Command.run("find", tree.toString(), "-printf", "%P %y %m %U %G %s %n %T@ %C@\\n")
        .expect(0)
        .out();
  }

  // A copy that eviction dropped is fetched again.
  @Test
  void eviction_lru_keepsTheTierBelowItsCapacityAndTheBytesRight() {
    Dataset larger = Dataset.create(pmfs.directory("larger"), Dataset.sizes(30, 120_000));
    String tier = "ssd:" + pmfs.tier() + ":" + 10 * 125_000;
    try (MountedPmfs mount = pmfs.mount(larger.root(), "--tier", tier, "--eviction", "lru")) {
      for (int round = 0; round < 2; round++) {
        larger.assertEqualBelow(mount.mountpoint());
        Status status = mount.awaitStagingIdle();
        assertThat(status.number("tiers.0.usedBytes")).isBetween(120_000L, 1_250_000L);
        if (Machine.isRoot()) {
          Machine.forget(mount.mountpoint());
        }
      }
      assertThat(mount.status().number("staging.evicted")).isPositive();
    }
  }
}
