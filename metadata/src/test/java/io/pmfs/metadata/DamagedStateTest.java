package io.pmfs.metadata;

import static io.pmfs.metadata.Samples.file;
import static io.pmfs.metadata.Samples.importAll;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.table.RocksFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.UUID;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Every file of a state, damaged: what is shown afterwards was so once, or is not there. */
final class DamagedStateTest {
  private static final int FILES = 3000;

  @TempDir Path temporary;

  enum Damage {
    REMOVED,
    EMPTY,
    HALVED,
    FLIPPED;

    void to(Path file, Random random) throws IOException {
      byte[] bytes = Files.readAllBytes(file);
      switch (this) {
        case REMOVED -> Files.delete(file);
        case EMPTY -> Files.write(file, new byte[0]);
        case HALVED -> Files.write(file, java.util.Arrays.copyOf(bytes, bytes.length / 2));
        case FLIPPED -> {
          for (int i = 0; i < 20 && bytes.length > 0; i++) {
            bytes[random.nextInt(bytes.length)] ^= (byte) (1 << random.nextInt(8));
          }
          Files.write(file, bytes);
        }
      }
    }
  }

  /** A state as a killed process leaves it: some in tables, some in the log. */
  private Path killed() throws IOException {
    Path live = temporary.resolve("live");
    Path copy = temporary.resolve("killed");
    Samples.open(live, "/data/set", RocksFiles.MIN_MEMORY_BYTES).close();
    try (RocksNamespace namespace = Samples.open(live, "/data/set", RocksFiles.MIN_MEMORY_BYTES)) {
      Samples.put(namespace, Samples.root());
      importAll(
          namespace, 1, IntStream.range(0, FILES).mapToObj(i -> file("f" + i, 10 + i)).toList());
    }
    try (RocksNamespace namespace = Samples.open(live, "/data/set", RocksFiles.MIN_MEMORY_BYTES)) {
      namespace.putCopy(5, Samples.copy("ssd", 1));
      copy(live, copy);
    }
    return copy;
  }

  private static void copy(Path from, Path to) throws IOException {
    Files.createDirectories(to);
    try (Stream<Path> files = Files.list(from)) {
      for (Path file : files.toList()) {
        Files.copy(file, to.resolve(Objects.requireNonNull(file.getFileName())));
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void open_anyFileDamaged_showsNothingWrong(Damage damage) throws IOException {
    Path whole = killed();
    long seed = System.nanoTime();
    Random random = new Random(seed);
    List<Path> files;
    try (Stream<Path> all = Files.list(whole)) {
      files = all.sorted().toList();
    }
    int setAside = 0;
    for (Path file : files) {
      String name = String.valueOf(file.getFileName());
      Path place = Files.createDirectory(temporary.resolve(damage + "-" + name));
      Path state = place.resolve("state");
      copy(whole, state);
      damage.to(state.resolve(name), random);
      List<String> lines = new ArrayList<>();
      try (RocksNamespace namespace =
          RocksNamespace.open(
              state,
              "/data/set",
              RocksFiles.MIN_MEMORY_BYTES,
              UUID.randomUUID(),
              null,
              lines::add)) {
        check(namespace, "%s %s, seed %d: %s".formatted(damage, name, seed, lines));
        if (namespace.failure() != null) {
          namespace.recover();
          assertThat(namespace.failure()).as("%s %s", damage, name).isNull();
        }
        check(namespace, "%s %s, seed %d: %s".formatted(damage, name, seed, lines));
      }
      setAside += Files.exists(place.resolve("state.damaged-1")) ? 1 : 0;
      System.out.println(damage + " " + name + ": " + lines);
    }
    assertThat(setAside).as("something was noticed").isPositive();
  }

  private static void check(Namespace namespace, String what) {
    Inode root = namespace.inode(1);
    if (root == null || root.listing() == null) {
      return;
    }
    List<String> names = new ArrayList<>();
    int losses = namespace.losses();
    try {
      namespace.list(1, 0, entry -> names.add(entry.name().toString()));
    } catch (NamespaceLostException e) {
      assertThat(namespace.losses()).isGreaterThan(losses);
    }
    if (losses == namespace.losses()) {
      assertThat(names).as(what).hasSize(FILES);
      for (int i = 0; i < FILES; i++) {
        DirectoryEntry entry = namespace.find(1, FileName.of("f" + i));
        if (losses != namespace.losses()) {
          return;
        }
        assertThat(entry).as(what).isNotNull();
        Inode inode = entry == null ? null : namespace.inode(entry.inode());
        if (losses == namespace.losses() && inode != null) {
          assertThat(inode.identity().inode()).as(what).isEqualTo(10 + i);
        }
      }
    }
  }

  @Test
  void setAside_fails_goesOnInMemory() throws IOException {
    Path state = Files.createDirectory(temporary.resolve("state"));
    Files.writeString(state.resolve("CURRENT"), "nonsense");
    Path blocked = Files.createDirectory(temporary.resolve("state.damaged-1"));
    assertThat(blocked).isDirectory();
    try (RocksNamespace namespace = Samples.open(state, "/data/set", RocksFiles.MIN_MEMORY_BYTES)) {
      assertThat(namespace.failure()).isNull();
    }
    assertThat(temporary.resolve("state.damaged-2")).isDirectory();
  }
}
