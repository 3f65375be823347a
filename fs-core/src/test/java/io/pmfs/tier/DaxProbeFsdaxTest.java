package io.pmfs.tier;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import jdk.nio.mapmode.ExtendedMapMode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The verdict on real persistent memory; runs in the virtual machine of {@code scripts/dax-vm}. */
@Tag("fsdax")
final class DaxProbeFsdaxTest {
  private static final boolean SYNCHRONOUS = "nvdimm".equals(System.getenv("PMEM_KIND"));

  private Path directory;

  @BeforeEach
  void make() throws Exception {
    directory = Files.createTempDirectory(Path.of(System.getenv("PMEM_DIR")), "probe");
  }

  @AfterEach
  void remove() throws Exception {
    Files.deleteIfExists(directory.resolve("file"));
    Files.deleteIfExists(directory);
  }

  private static DaxVerdict probe(Path place) throws IOException {
    return DaxProbe.probe(place, DaxFiles.NONE, Path.of("/")).verdict();
  }

  @Test
  void probe_onPersistentMemory_isRealWhereMappingsAreSynchronous() throws Exception {
    DaxVerdict dax = probe(directory);

    assertThat(dax.real()).as(dax.reason()).isEqualTo(SYNCHRONOUS);
    assertThat(dax.reason()).contains(SYNCHRONOUS ? " on /dev/pmem" : "DAX");
    assertThat(directory).isEmptyDirectory();
  }

  @Test
  void probe_ofTmpfsInTheSameMachine_isEmulated() throws Exception {
    DaxVerdict dax = probe(Path.of("/dev/shm"));

    assertThat(dax.real()).isFalse();
    assertThat(dax.reason()).contains("tmpfs");
  }

  /** VmFlags of proc_pid_smaps(5): {@code sf} is a synchronous page fault, MAP_SYNC. */
  @Test
  void map_synchronously_isWhatTheKernelSaysToo() throws Exception {
    Path file = Files.write(directory.resolve("file"), new byte[4096]);
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      if (SYNCHRONOUS) {
        channel.map(ExtendedMapMode.READ_WRITE_SYNC, 0, 4096).force();
      } else {
        channel.map(FileChannel.MapMode.READ_WRITE, 0, 4096).force();
      }
      assertThat(flagsOfMapping(file).contains(" sf")).isEqualTo(SYNCHRONOUS);
    }
  }

  private static String flagsOfMapping(Path file) throws Exception {
    boolean found = false;
    for (String line : Files.readAllLines(Path.of("/proc/self/smaps"))) {
      found |= line.endsWith(" " + file);
      if (found && line.startsWith("VmFlags:")) {
        return line;
      }
    }
    throw new AssertionError(file + " is not mapped");
  }
}
