package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A tier that is a pool, which a file stands in for. */
final class PoolIT {
  private static final Duration LIFETIME = Duration.ofMinutes(4);
  private static final int MIB = 1 << 20;

  @Installed private Installation pmfs;
  private Dataset dataset;
  private Path pool;

  @BeforeEach
  void makeSource() {
    int[] sizes = Arrays.copyOf(Dataset.sizes(40, 9_000), 44);
    sizes[40] = 300_000;
    sizes[41] = MIB;
    sizes[42] = 3 * MIB + 1;
    sizes[43] = 1;
    dataset = Dataset.create(pmfs.directory("source"), sizes);
    pool = pmfs.directory("pools").resolve("test.pool");
  }

  private MountedPmfs mount(String... options) {
    return mountAs("32M", options);
  }

  private MountedPmfs mountAs(String capacity, String... options) {
    return pmfs.mount(LIFETIME, dataset.root(), with(capacity, options));
  }

  private String[] with(String capacity, String... options) {
    String[] all = Arrays.copyOf(options, options.length + 2);
    all[options.length] = "--tier";
    all[options.length + 1] = "pm:" + pool + ":" + capacity;
    return all;
  }

  private Command refused(String capacity, String... options) {
    return pmfs.run(
        pmfs.mountArguments(dataset.root(), pmfs.mountpoint(), with(capacity, options)));
  }

  @ParameterizedTest
  @EnumSource(BridgeMode.class)
  void tree_fromThePool_isTheSource(BridgeMode mode) {
    mode.runsInEveryRunIf(BridgeMode.PASSTHROUGH);
    try (MountedPmfs mount = mode.mount(pmfs, LIFETIME, dataset.root(), with("32M"))) {
      dataset.assertEqualBelow(mount.mountpoint());
      Status status = mount.awaitCopies(44);
      assertThat(status.text("tiers.0.path")).isEqualTo(pool.toString());
      assertThat(status.flag("tiers.0.dax.real")).isFalse();
      assertThat(status.text("tiers.0.dax.reason")).startsWith("emulated: a file on ");
      dataset.assertEqualBelow(mount.mountpoint());
    }
    try (MountedPmfs mount = mode.mount(pmfs, LIFETIME, dataset.root(), with("32M"))) {
      assertThat(mount.status().text("tiers.0.state")).isEqualTo("on");
      dataset.assertEqualBelow(mount.mountpoint());
      Status status = mount.status();
      assertThat(status.number("sourceOperations.reads")).isZero();
      assertThat(status.number("staging.mismatches")).isZero();
      assertThat(status.number("tiers.0.copies")).isEqualTo(44);
    }
  }

  @Test
  void kill9_whileItIsFilled_leavesNothingWrong() throws Exception {
    MountedPmfs killed = mount();
    assertThat(Dataset.read(killed.mountpoint().resolve("part-004/file-00042")))
        .hasSize(3 * MIB + 1);
    dataset.assertEqualBelow(killed.mountpoint());
    killed.kill9();
    MountedPmfs.detach(killed.mountpoint());
    try (MountedPmfs mount = mount()) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(44);
      assertThat(mount.status().number("staging.mismatches")).isZero();
      pmfs.run("verify", mount.mountpoint().toString()).expect(0);
    }
    try (MountedPmfs mount = mount()) {
      dataset.assertEqualBelow(mount.mountpoint());
      assertThat(mount.status().number("sourceOperations.reads")).isZero();
    }
  }

  @Test
  @OnRequest("cases")
  void evict_all_givesTheRoomBack() {
    try (MountedPmfs mount = mount()) {
      pmfs.run("stage", mount.mountpoint().toString()).expect(0);
      assertThat(mount.status().number("tiers.0.copies")).isEqualTo(44);
      pmfs.run("evict", mount.mountpoint().toString()).expect(0);
      assertThat(mount.status().number("tiers.0.copies")).isZero();
      assertThat(mount.status().number("tiers.0.usedBytes")).isZero();
      pmfs.run("stage", mount.mountpoint().toString()).expect(0);
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  @Test
  @OnRequest("cases")
  void verify_flippedBytes_findsAndReplacesThem() {
    try (MountedPmfs mount = mount()) {
      pmfs.run("stage", mount.mountpoint().toString()).expect(0);
    }
    for (int i : new int[] {3, 42}) {
      Dataset.Copy copy = Dataset.copyOf(dataset.items().get(i), pmfs.directory("pools"));
      Faults.flipByte(copy.file(), copy.offset() + 700);
    }
    try (MountedPmfs mount = mount()) {
      Command verified = pmfs.run("verify", mount.mountpoint().toString());
      assertThat(verified.exit()).as("%s", verified).isEqualTo(4);
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(44);
      pmfs.run("verify", mount.mountpoint().toString()).expect(0);
    }
  }

  @Test
  @OnRequest("cases")
  void stage_intoAFullPool_saysWhatIsLeftOut() {
    Dataset large = Dataset.create(pmfs.directory("large"), Dataset.sizes(12, MIB));
    dataset = large;
    try (MountedPmfs mount = mountAs("10M")) {
      Command staged = pmfs.run("stage", mount.mountpoint().toString());
      assertThat(staged.exit()).as("%s", staged).isEqualTo(4);
      assertThat(mount.status().number("tiers.0.copies")).isEqualTo(7);
      large.assertEqualBelow(mount.mountpoint());
    }
  }

  @Test
  @OnRequest("cases")
  void lru_poolSmallerThanTheDataset_servesEveryByte() {
    dataset = Dataset.create(pmfs.directory("large"), Dataset.sizes(60, 400_000));
    try (MountedPmfs mount = mountAs("12M", "--eviction", "lru")) {
      for (int round = 0; round < 3; round++) {
        dataset.assertEqualBelow(mount.mountpoint());
        if (Machine.isRoot()) {
          Machine.forget(mount.mountpoint());
        }
      }
      Status status = mount.awaitStagingIdle();
      assertThat(status.number("staging.evicted")).isPositive();
      assertThat(status.number("staging.mismatches")).isZero();
      assertThat(status.number("reads.errors")).isZero();
      assertThat(status.number("tiers.0.usedBytes"))
          .isLessThanOrEqualTo(status.number("tiers.0.capacityBytes"));
    }
  }

  @Test
  @OnRequest("cases")
  void compression_auto_keepsItsDictionaryFromMountToMount() throws Exception {
    Path source = pmfs.directory("texts");
    for (int i = 0; i < 400; i++) {
      Files.writeString(
          source.resolve("text-" + i), ("{\"line\": " + i * 7919 + "}\n").repeat(60 + i % 7));
    }
    String[] options = with("32M", "--compression", "auto");
    try (MountedPmfs mount = pmfs.mount(LIFETIME, source, options)) {
      pmfs.run("stage", mount.mountpoint().toString()).expect(0);
      assertThat(mount.status().number("tiers.0.contentBytes")).isPositive();
    }
    try (MountedPmfs mount = pmfs.mount(LIFETIME, source, options)) {
      for (int i = 0; i < 400; i++) {
        assertThat(Dataset.read(mount.mountpoint().resolve("text-" + i)))
            .isEqualTo(Dataset.read(source.resolve("text-" + i)));
      }
      assertThat(mount.status().number("sourceOperations.reads")).isZero();
      assertThat(mount.status().number("staging.mismatches")).isZero();
    }
  }

  @Test
  @OnRequest("cases")
  void mount_onSomethingElse_isRefusedAndOverwrittenOnlyIfAsked() throws IOException {
    byte[] foreign = new byte[16 * MIB];
    Arrays.fill(foreign, (byte) 'x');
    Files.write(pool, foreign);
    assertRefused(refused("16M"), 1, "is neither empty nor a pool");
    assertThat(Dataset.read(pool)).isEqualTo(foreign);
    try (MountedPmfs mount = mount("--format")) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(44);
    }

    Dataset other = Dataset.create(pmfs.directory("other"), 1000);
    Dataset first = dataset;
    dataset = other;
    assertRefused(refused("16M"), 1, "holds copies of another dataset, source-");
    dataset = first;
    try (MountedPmfs mount = mount()) {
      Path elsewhere = pmfs.directory("elsewhere");
      Command second = pmfs.run(pmfs.mountArguments(other.root(), elsewhere, with("16M")));
      assertRefused(second, 1, "is in use by another mount");
      assertThat(mount.status().number("tiers.0.copies")).isEqualTo(44);
      Command formatted =
          pmfs.run(pmfs.mountArguments(other.root(), elsewhere, with("16M", "--format")));
      assertRefused(formatted, 1, "is in use by another mount");
    }
    Faults.truncate(pool, 12 * MIB);
    assertRefused(
        refused("16M"), 1, "has 12582912 bytes instead of the 16777216 it was created with");
  }

  private static void assertRefused(Command command, int exit, String why) {
    assertThat(command.exit()).as("%s", command).isEqualTo(exit);
    assertThat(command.errorLines()).as("%s", command).hasSize(1);
    assertThat(command.errorLines().get(0)).contains(why).contains(";");
  }

  @Test
  @OnRequest("cases")
  void mount_placeThatCannotBeAPool_isRefused() throws IOException {
    Path file = Files.write(pool.resolveSibling("file"), new byte[0]);
    pool = file;
    assertRefused(refused("100%"), 2, "the file of a pool needs a size");
    pool = file.resolveSibling("new.pool");
    assertRefused(refused("100%"), 2, "the file of a pool needs a size");
    assertRefused(refused("1M"), 1, "too few for a pool");
    pool = Path.of("/dev/null");
    assertRefused(refused("8G"), 2, "everybody can write in /dev/null (mode 0666)");
    pool = file.resolveSibling("null");
    Command.run("mknod", "-m", "600", pool.toString(), "c", "1", "3").expect(0);
    assertRefused(refused("8G"), 1, "is not a dax device");
    pool = file.resolveSibling("not/there.pool");
    assertRefused(refused("8M"), 2, "its directory does not exist");
    Command ssd =
        pmfs.run(pmfs.mountArguments(dataset.root(), pmfs.mountpoint(), "--tier", "ssd:" + file));
    assertRefused(ssd, 2, "name a directory, or use the file as a pool: pm:");
    Command formatted =
        pmfs.run(pmfs.mountArguments(dataset.root(), pmfs.mountpoint(), "--format"));
    assertRefused(formatted, 2, "so there is no pool");
  }

  @Test
  void pool_cutShortWhileItIsRead_costsNoRead() throws IOException {
    Machine.requireRoot();
    String[] release = Files.readString(Path.of("/proc/sys/kernel/osrelease")).split("\\D+", 3);
    assumeTrue(
        Integer.parseInt(release[0]) * 1000 + Integer.parseInt(release[1]) >= 5014,
        "needs Linux 5.14, which tells what memory can be read");
    try (MountedPmfs mount = mount()) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(44);
      Faults.truncate(pool, 3 * MIB);
      Machine.forget(mount.mountpoint());
      dataset.assertEqualBelow(mount.mountpoint());
      Status status = mount.status();
      assertThat(status.text("tiers.0.state")).isEqualTo("failed");
      assertThat(status.text("tiers.0.reason")).contains("its file was truncated");
      assertThat(status.number("reads.errors")).isZero();
    }
  }

  @Test
  @OnRequest("cases")
  void purge_ofAPool_leavesAnEmptyOne() {
    MountedPmfs mount = mount();
    dataset.assertEqualBelow(mount.mountpoint());
    mount.awaitCopies(44);
    pmfs.run("umount", "--purge", mount.mountpoint().toString()).expect(0);
    mount.ended();
    dataset = Dataset.create(pmfs.directory("other"), 1000, 70_000);
    try (MountedPmfs other = mount()) {
      dataset.assertEqualBelow(other.mountpoint());
      other.awaitCopies(2);
    }
  }

  @Test
  void daemon_thatTakesOver_doesNotFormatAgain() {
    Machine.requireRoot();
    try (MountedPmfs mount = mount("--format")) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(44);
      long first = mount.daemon();
      Command.run("kill", "-KILL", Long.toString(first)).expect(0);
      mount.awaitSuccessor(first);
      Status status = mount.awaitCopies(44);
      assertThat(status.number("sourceOperations.reads")).isZero();
      Machine.forget(mount.mountpoint());
      dataset.assertEqualBelow(mount.mountpoint());
      assertThat(mount.status().number("sourceOperations.reads")).isZero();
    }
  }

  /** The successor maps the same pool: its copies are served on, and nothing is fetched again. */
  @Test
  @OnRequest("cases")
  void upgrade_underReaders_servesTheSameCopies() {
    Machine.requireRoot();
    try (MountedPmfs mount = mount()) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(44);
      long used = mount.status().number("tiers.0.usedBytes");
      try (Readers readers =
          new Readers(dataset, mount.mountpoint(), 2, dataset.items().subList(0, 10))) {
        readers.awaitMore(50);
        long pid = mount.daemon();
        pmfs.run("upgrade", mount.mountpoint().toString()).expect(0);
        assertThat(mount.daemon()).isNotEqualTo(pid);
        Machine.forget(mount.mountpoint());
        readers.awaitMore(50);
        readers.assertNoFailures();
      }
      Machine.forget(mount.mountpoint());
      dataset.assertEqualBelow(mount.mountpoint());
      Status status = mount.awaitStagingIdle();
      assertThat(status.text("tiers.0.path")).isEqualTo(pool.toString());
      assertThat(status.text("tiers.0.state")).isEqualTo("on");
      assertThat(status.number("tiers.0.copies")).isEqualTo(44);
      assertThat(status.number("tiers.0.usedBytes")).isEqualTo(used);
      assertThat(status.number("sourceOperations.reads")).isZero();
      assertThat(status.number("staging.mismatches")).isZero();
      assertThat(status.number("reads.errors")).isZero();
    }
  }
}
