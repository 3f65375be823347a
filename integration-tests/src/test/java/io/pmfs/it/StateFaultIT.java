package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.it.Dataset.Item;
import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The disk of tier and state, which by default is one, fails under readers of names that were never
 * looked up before. They see the source's bytes and no error.
 */
final class StateFaultIT {
  /** So many names that they do not fit into what RocksDB's log has reserved on the disk. */
  private static final int COUNT = 6000;

  private static final int SIZE = 100;
  private static final int KNOWN = COUNT / 4;
  private static final Duration RECOVERY = Duration.ofSeconds(90);

  private Installation pmfs;
  private FaultyDisk disk;
  private Dataset dataset;

  @BeforeEach
  void install() {
    Machine.requireFuse();
    Machine.requireRoot();
    pmfs = new Installation();
    disk = FaultyDisk.create(pmfs.scratch(), "disk", "160M");
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(COUNT, SIZE));
    // What changed within the last two seconds is listed again in any case.
    Command.run(
            "find",
            dataset.root().toString(),
            "-type",
            "d",
            "-exec",
            "touch",
            "-d",
            "2024-01-01",
            "{}",
            "+")
        .expect(0);
  }

  @AfterEach
  void remove() {
    if (disk != null) {
      disk.stopFilling();
    }
    if (pmfs != null) {
      pmfs.close();
    }
    if (disk != null) {
      disk.close();
    }
  }

  private Path tier() {
    Path tier = disk.directory().resolve("pmfs");
    try {
      return Files.createDirectories(tier);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private MountedPmfs mount() {
    return pmfs.mount(
        Duration.ofMinutes(10),
        dataset.root(),
        "--tier",
        "ssd:" + tier(),
        "--metadata-memory",
        "16M");
  }

  private static String inodes(MountedPmfs mount) {
    return Command.run("stat", "-c", "%n %i", mount.path("part-000"), mount.path("part-003"))
        .expect(0)
        .out();
  }

  private Command status(MountedPmfs mount) {
    return pmfs.run("status", mount.mountpoint().toString());
  }

  private void readKnown(MountedPmfs mount) {
    dataset.items().subList(0, KNOWN).forEach(item -> compare(mount, item));
  }

  private static void compare(MountedPmfs mount, Item item) {
    Dataset.assertEqualBelow(mount.mountpoint(), item);
  }

  /** All names and sizes, and the content of every fourth file: it is names that the state has. */
  private void readAll(MountedPmfs mount) {
    Machine.dropCaches();
    for (int i = 0; i < COUNT; i += 4) {
      compare(mount, dataset.items().get(i));
    }
    String found =
        Command.run("find", mount.mountpoint().toString(), "-type", "f", "-size", SIZE + "c")
            .expect(0)
            .out();
    assertThat(found.lines()).hasSize(COUNT);
  }

  private void assertNotRecorded(MountedPmfs mount, String why) {
    Command status = status(mount);
    assertThat(status.exit()).as("%s", status).isEqualTo(4);
    assertThat(status.err()).contains("the state is not recorded").contains(why);
    assertThat(mount.status().number("reads.errors")).isZero();
  }

  private void awaitRecorded(MountedPmfs mount) {
    Await.until(
        () -> "recorded again: " + status(mount),
        RECOVERY,
        () -> mount.status().text("stateFailure").isEmpty());
    assertThat(status(mount).err()).doesNotContain("not recorded");
  }

  /** What was looked up while it could not be recorded is recorded now. */
  private void assertNothingIsListedAgain() {
    try (MountedPmfs mount = mount()) {
      // Mounting looks once whether the source holds archives.
      long listsOfMounting = mount.status().number("sourceOperations.lists");
      readAll(mount);
      Status status = mount.status();
      assertThat(status.number("sourceOperations.lists"))
          .as("%s", status)
          .isEqualTo(listsOfMounting);
    }
  }

  /** How the disk fails and becomes usable again. */
  @SuppressWarnings("ImmutableEnumChecker") // methods without state
  private enum DiskFault {
    READ_ONLY("Read-only file system", FaultyDisk::turnReadOnly, FaultyDisk::repair),
    GONE("Input/output error", StateFaultIT::syncAndShutDown, FaultyDisk::repair),
    FULL("No space left on device", FaultyDisk::keepFull, FaultyDisk::free),
    REPLACED("Input/output error", FaultyDisk::shutDown, FaultyDisk::replace);

    private final String reason;
    private final Consumer<FaultyDisk> begin;
    private final Consumer<FaultyDisk> end;

    DiskFault(String reason, Consumer<FaultyDisk> begin, Consumer<FaultyDisk> end) {
      this.reason = reason;
      this.begin = begin;
      this.end = end;
    }

    /** Whether the disk has what was recorded on it, and nothing else, when it is usable again. */
    private boolean keepsRecords() {
      return this == READ_ONLY || this == FULL;
    }
  }

  /** The fault that leaves least: not even what was recorded can be read. */
  @Test
  @OnRequest("cases")
  void disk_goneUntilItIsRepaired_namesAreReadAndThenRecorded() {
    assertReadAndThenRecorded(DiskFault.GONE);
  }

  @ParameterizedTest
  @EnumSource(names = "GONE", mode = EnumSource.Mode.EXCLUDE)
  @OnRequest(value = "modes", what = "the same with another fault")
  void disk_failsOtherwise_namesAreReadAndThenRecorded(DiskFault fault) {
    assertReadAndThenRecorded(fault);
  }

  private static void syncAndShutDown(FaultyDisk disk) {
    Command.run("sync", "-f", disk.directory().toString()).expect(0);
    disk.shutDown();
  }

  private void assertReadAndThenRecorded(DiskFault fault) {
    try (MountedPmfs mount = mount()) {
      readKnown(mount);
      String before = inodes(mount);
      fault.begin.accept(disk);
      readAll(mount);
      assertNotRecorded(mount, fault.reason);
      assertThat(inodes(mount)).isEqualTo(before);
      fault.end.accept(disk);
      awaitRecorded(mount);
      readAll(mount);
      assertThat(inodes(mount)).isEqualTo(before);
    }
    if (fault.keepsRecords()) {
      assertNothingIsListedAgain();
      return;
    }
    try (MountedPmfs mount = mount()) {
      readAll(mount);
    }
  }

  @Test
  void state_damagedBetweenMounts_isSetAsideAndBuiltAgain() {
    try (MountedPmfs mount = mount()) {
      readKnown(mount);
    }
    Path state = onlyDirectory(tier().resolve("state"));
    Faults.truncate(state.resolve("CURRENT"), 3);
    try (MountedPmfs mount = mount()) {
      readAll(mount);
      assertThat(status(mount).err()).doesNotContain("not recorded");
    }
    assertThat(state.resolveSibling(state.getFileName() + ".damaged-1")).isDirectory();
    assertNothingIsListedAgain();
  }

  /**
   * The kernel keeps what it read by inode number: a successor that knows no names must give none
   * of those numbers to another file.
   */
  @Test
  void state_goneWhenTheDaemonIsKilled_noFileHasTheBytesOfAnother() {
    try (MountedPmfs mount = mount()) {
      readKnown(mount);
      Path state = onlyDirectory(tier().resolve("state"));
      Command.run("rm", "-rf", state.toString()).expect(0);
      long killed = mount.daemon();
      Command.run("kill", "-KILL", Long.toString(killed)).expect(0);
      mount.awaitSuccessor(killed);
      // In another order than before, and without emptying the kernel's caches.
      List<Item> backwards = new ArrayList<>(dataset.items());
      Collections.reverse(backwards);
      backwards.forEach(item -> compare(mount, item));
      readAll(mount);
      assertThat(status(mount).err()).doesNotContain("not recorded");
    }
  }

  private static Path onlyDirectory(Path parent) {
    try (Stream<Path> all = Files.list(parent)) {
      List<Path> directories = all.toList();
      assertThat(directories).hasSize(1);
      return directories.get(0);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
