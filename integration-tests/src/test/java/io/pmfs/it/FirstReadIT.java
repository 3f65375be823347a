package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Large files without a copy: the kernel reads them at the source, and they are copied meanwhile.
 */
final class FirstReadIT {
  private static final int MIB = 1 << 20;
  private static final int SIZE = 5 * MIB + 7;

  @Installed(byRoot = true)
  private Installation pmfs;

  private Dataset dataset;
  private Dataset.Item first;

  @SuppressWarnings("NullAway.Init")
  FirstReadIT() {}

  @BeforeEach
  void create() {
    dataset = Dataset.create(pmfs.directory("source"), SIZE, SIZE, 20_000);
    first = dataset.items().get(0);
  }

  @Test
  void read_ofLargeFiles_isByTheKernelAtTheSource_andOfTheCopiesLater() {
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      Status status = mount.awaitCopies(3);
      assertThat(status.number("reads.opensLeftToKernel")).as("%s", status).isPositive();
      long atSource = status.number("recent.sourceLeftToKernel");
      assertThat(atSource).as("%s", status).isPositive();
      assertThat(atSource % SIZE).as("%s", status).isZero();
      assertThat(status.number("sourceOperations.bytes")).isEqualTo(2L * SIZE + 20_000);
      assertThat(status.text("engagement.state")).isEqualTo("filling");
      dataset.assertEqualBelow(mount.mountpoint());
      status = mount.status();
      assertThat(status.number("recent.sourceLeftToKernel")).as("%s", status).isEqualTo(atSource);
      assertThat(status.number("recent.leftToKernel")).as("%s", status).isPositive();
      assertThat(status.number("sourceOperations.bytes")).isEqualTo(2L * SIZE + 20_000);
    }
  }

  @Test
  void mapping_ofAFileAtTheSource_survivesTheDaemonAndItsSuccessor() throws Exception {
    try (MountedPmfs mount = pmfs.mount(dataset.root());
        Mapping held = new Mapping(mount.path(first.name()), SIZE)) {
      assertThat(mount.status().number("recent.sourceLeftToKernel")).isEqualTo(SIZE);
      mount.awaitCopies(1);
      long killed = mount.daemon();
      mount.killDaemon();
      held.assertEquals(first);
      mount.awaitSuccessor(killed);
      pmfs.run("upgrade", mount.mountpoint().toString()).expect(0);
      held.remap();
      held.assertEquals(first);
      try (Mapping again = new Mapping(mount.path(first.name()), SIZE)) {
        again.assertEquals(first);
      }
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  /** The open file is the one that was looked up; what the path leads to now is never mixed in. */
  @Test
  void file_replacedWhileItIsOpenAtTheSource_staysWhatItWas() throws IOException {
    Path fresh = Files.write(pmfs.directory("elsewhere").resolve("fresh"), new byte[SIZE]);
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      try (Mapping held = new Mapping(mount.path(first.name()), SIZE)) {
        Files.move(fresh, source(), StandardCopyOption.REPLACE_EXISTING);
        held.assertEquals(first);
        mount.awaitStagingIdle();
        held.assertEquals(first);
      }
    }
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      assertThat(Dataset.read(mount.mountpoint().resolve(first.name()))).isEqualTo(new byte[SIZE]);
    }
  }

  @Test
  void file_changedInPlaceWhileItIsCopied_leavesNoCopyForTheNextMount() throws IOException {
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      int file = Posix.open(mount.path(first.name()), Posix.O_RDONLY);
      try {
        Posix.write(source().toString(), SIZE - 1, new byte[] {1});
      } finally {
        Posix.close(file);
      }
      mount.awaitStagingIdle();
    }
    byte[] now = Files.readAllBytes(source());
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      assertThat(Dataset.read(mount.mountpoint().resolve(first.name()))).isEqualTo(now);
      mount.awaitStagingIdle();
      assertThat(Dataset.read(mount.mountpoint().resolve(first.name()))).isEqualTo(now);
    }
  }

  /** What a job of little memory has read would be gone before it is copied, and be read twice. */
  @Test
  void file_largerThanAQuarterOfTheReadersMemory_isReadByTheDaemon() throws Exception {
    try (ControlGroup job = new ControlGroup("memory");
        MountedPmfs mount = pmfs.mount(dataset.root())) {
      Dataset.assertEqualBelow(mount.mountpoint(), dataset.items().get(1));
      assertThat(mount.status().number("recent.sourceLeftToKernel")).isEqualTo(SIZE);
      job.set("memory.limit_in_bytes", Integer.toString(3 * SIZE));
      Command.run(
              "sh",
              "-c",
              "echo $$ >\"$0\" && exec cmp \"$1\" \"$2\"",
              job.processes().toString(),
              mount.path(first.name()),
              source().toString())
          .expect(0);
      assertThat(mount.status().number("recent.sourceLeftToKernel")).isEqualTo(SIZE);
    }
  }

  /** Of another version than its attributes: the daemon reads it, and finds out. */
  @Test
  @OnRequest("cases")
  void file_truncatedBetweenLookupAndOpen_isNotLeftToTheKernel() throws IOException {
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      assertThat(Posix.stat(mount.path(first.name())).size()).isEqualTo(SIZE);
      Files.write(source(), Arrays.copyOf(first.content(), MIB));
      assertThat(Posix.withFile(mount.path(first.name()), Posix.O_RDONLY, file -> file))
          .isNotNegative();
      assertThat(mount.status().number("recent.sourceLeftToKernel")).isZero();
    }
  }

  /** The source is spared nothing then, and that is what the status says. */
  @Test
  @OnRequest("cases")
  void file_withoutRoomForItsCopy_isAtTheSourceEachTime() {
    String tier = "ssd:" + pmfs.directory("small") + ":1M";
    try (MountedPmfs mount = pmfs.mount(dataset.root(), "--tier", tier)) {
      for (int i = 1; i <= 3; i++) {
        Dataset.assertEqualBelow(mount.mountpoint(), first);
        Status status = mount.awaitStagingIdle();
        assertThat(status.number("recent.sourceLeftToKernel"))
            .isGreaterThanOrEqualTo((long) i * SIZE);
        assertThat(status.text("engagement.state")).as("%s", status).isNotEqualTo("engaged");
      }
    }
  }

  private Path source() {
    return dataset.root().resolve(first.name());
  }
}
