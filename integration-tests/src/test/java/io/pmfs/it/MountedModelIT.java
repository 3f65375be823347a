package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Random operations on a mount whose daemon is killed, whose copies rot and go, and whose source
 * changes between mounts: every answer is the source's. {@code -Dpmfs.model.seed=N} chooses the
 * seed, which is printed.
 */
@ParameterizedClass
@EnumSource
final class MountedModelIT {
  private static final int MOUNTS = 4;
  private static final int OPERATIONS = 150;
  private static final int LARGEST = 3 << 20;

  @Parameter BridgeMode mode;

  @Installed(inEveryRun = BridgeMode.PASSTHROUGH)
  private Installation pmfs;

  private Dataset dataset;
  private Random random;

  @BeforeEach
  void makeSource() {
    long seed = Long.getLong("pmfs.model.seed", System.nanoTime());
    System.out.println("MountedModelIT " + mode + " -Dpmfs.model.seed=" + seed);
    random = new Random(seed);
    int[] sizes =
        IntStream.range(0, 60).map(i -> random.nextInt(i % 10 == 0 ? LARGEST : 60_000)).toArray();
    dataset = Dataset.create(pmfs.directory("source"), sizes);
  }

  @Test
  void operations_random_answerAsTheSource() throws Exception {
    for (int i = 0; i < MOUNTS; i++) {
      MountedPmfs mount = mode.mount(pmfs, dataset.root());
      for (int operation = 0; operation < OPERATIONS; operation++) {
        look(mount);
      }
      if (random.nextBoolean()) {
        mount.kill9();
      } else {
        mount.close();
      }
      rot();
      for (int change = random.nextInt(8); change > 0; change--) {
        change();
      }
    }
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      Command.run("diff", "-r", dataset.root().toString(), mount.mountpoint().toString()).expect(0);
    }
  }

  private static Path parent(Path path) {
    return Objects.requireNonNull(path.getParent());
  }

  private void look(MountedPmfs mount) throws IOException {
    List<Path> files = files();
    Path file = files.get(random.nextInt(files.size()));
    Path shown = mount.mountpoint().resolve(dataset.root().relativize(file));
    switch (random.nextInt(8)) {
      case 0 -> assertThat(names(parent(shown))).isEqualTo(names(parent(file)));
      case 1 ->
          assertThat(Files.getLastModifiedTime(shown)).isEqualTo(Files.getLastModifiedTime(file));
      case 2 -> {
        String missing = shown + "-none";
        assertThat(Posix.outcome(Posix.readByte(missing))).isEqualTo("ENOENT");
      }
      case 3 -> assertThat(Files.size(shown)).isEqualTo(Files.size(file));
      default -> {
        int size = Math.toIntExact(Files.size(file));
        int offset = random.nextInt(size + 10);
        int count = 1 + random.nextInt(300_000);
        byte[] expected =
            Arrays.copyOfRange(
                Dataset.read(file), Math.min(offset, size), Math.min(offset + count, size));
        assertThat(Posix.pread(shown.toString(), count, offset))
            .as("%s from %d, %d bytes", file, offset, count)
            .matches(got -> Arrays.equals(got, expected));
      }
    }
  }

  private static Set<String> names(Path directory) throws IOException {
    try (Stream<Path> names = Files.list(directory)) {
      return names.map(name -> name.getFileName().toString()).collect(Collectors.toSet());
    }
  }

  private List<Path> files() {
    return Installation.files(dataset.root()).stream().sorted().toList();
  }

  /** Harms a tenth of the files with copies, as bad disks and power loss do. */
  private void rot() {
    for (Path copy : pmfs.copies()) {
      long size = copy.toFile().length();
      if (size > 0 && random.nextInt(10) == 0) {
        switch (random.nextInt(3)) {
          case 0 -> Faults.delete(copy);
          case 1 -> Faults.truncate(copy, random.nextInt((int) Math.min(size, LARGEST)));
          default -> Faults.flipByte(copy, random.nextInt((int) Math.min(size, LARGEST)));
        }
      }
    }
  }

  private void change() throws IOException {
    List<Path> files = files();
    Path file = files.get(random.nextInt(files.size()));
    byte[] content = new byte[random.nextInt(60_000)];
    random.nextBytes(content);
    switch (random.nextInt(4)) {
      case 0 -> Files.write(file, content);
      case 1 -> {
        Files.write(file, content);
        Files.setLastModifiedTime(file, FileTime.from(Instant.ofEpochSecond(random.nextInt())));
      }
      case 2 -> Files.move(file, file.resolveSibling("moved-" + random.nextInt(1_000_000)));
      default -> Files.write(file.resolveSibling("new-" + random.nextInt(1_000_000)), content);
    }
  }
}
