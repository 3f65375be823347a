package io.pmfs.stage.copies;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.stage.Stage;
import io.pmfs.stage.formats.Bundling;
import io.pmfs.tier.FaultyTier.Fault;
import io.pmfs.tier.FaultyTier.Point;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A tier and the records are compared in both directions, while both are in use. */
@Timeout(120)
final class TierComparisonTest {
  private static final long ROOM = 256L << 20;
  private static final int UNIT = 4096;

  @TempDir private Path directory;

  private static List<Inode> stage(Stage stage, int files, int size) throws Exception {
    for (int i = 0; i < files; i++) {
      stage.store.file("f" + i, i, size);
    }
    stage.importAll();
    List<Inode> inodes = new ArrayList<>();
    for (int i = 0; i < files; i++) {
      inodes.add(stage.inode("f" + i));
      stage.read(inodes.get(i));
    }
    stage.awaitIdle();
    return inodes;
  }

  private static void compare(Stage stage) {
    stage.copies.compareWithRecords(stage.tiers.get(0), () -> false);
  }

  private static long recorded(Stage stage) {
    List<Long> numbers = new ArrayList<>();
    stage.namespace.listCopies(0, (number, copy) -> numbers.add(number));
    return numbers.size();
  }

  private Path tier() {
    return directory.resolve("tier0");
  }

  @Test
  void compare_filesGone_forgetsTheirRecordsAndGivesTheirRoomBack() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      List<Inode> inodes = stage(stage, 700, 10);
      for (int i = 0; i < 700; i += 2) {
        Files.delete(
            tier()
                .resolve(
                    "copies/00/%02x/%06x".formatted(number(inodes, i) >> 8, number(inodes, i))));
      }
      stage.restart();
      compare(stage);

      assertThat(recorded(stage)).isEqualTo(350);
      assertThat(stage.tiers.get(0).status().copies()).isEqualTo(350);
      assertThat(stage.tiers.get(0).status().usedBytes()).isEqualTo(350 * UNIT);
      assertThat(stage.copies.has(inodes.get(0))).isFalse();
      assertThat(stage.copies.has(inodes.get(1))).isTrue();
      assertThat(stage.copies.formats().get(0).contentBytes()).isEqualTo(3500);
    }
  }

  private static long number(List<Inode> inodes, int index) {
    return inodes.get(index).number();
  }

  @Test
  void compare_filesWithoutARecord_removesThem() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      List<Inode> inodes = stage(stage, 3, 10);
      stage.namespace.removeCopy(number(inodes, 1), "ssd:0");
      stage.restart();
      compare(stage);

      assertThat(stage.copyFile(0, inodes.get(0))).exists();
      assertThat(stage.copyFile(0, inodes.get(1))).doesNotExist();
      assertThat(stage.tiers.get(0).status().copies()).isEqualTo(2);
      assertThat(stage.tiers.get(0).status().usedBytes()).isEqualTo(2 * UNIT);
    }
  }

  @Test
  void compare_filesCutShort_removesThem() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      List<Inode> inodes = stage(stage, 2, 9000);
      Files.write(stage.copyFile(0, inodes.get(0)), new byte[8999]);
      stage.restart();
      compare(stage);

      assertThat(stage.copyFile(0, inodes.get(0))).doesNotExist();
      assertThat(recorded(stage)).isEqualTo(1);
      assertThat(stage.tiers.get(0).status().usedBytes()).isEqualTo(3 * UNIT);
    }
  }

  @Test
  void compare_bundleGone_forgetsItsCopies() throws Exception {
    try (Stage stage = new Stage(directory, 1 << 20).with(Bundling.ALL)) {
      List<Inode> inodes = stage(stage, 60, 3000);
      List<Path> bundles;
      try (var files = Files.list(tier().resolve("bundles"))) {
        bundles = files.sorted().toList();
      }
      assertThat(bundles).hasSize(3);
      Files.delete(bundles.get(0));
      compare(stage);

      long left = stage.tiers.get(0).status().copies();
      assertThat(left).isBetween(35L, 40L).isEqualTo(recorded(stage));
      for (Inode inode : inodes) {
        CopyRecord copy = stage.namespace.copy(inode.number(), "ssd:0");
        assertThat(copy == null).isEqualTo(!stage.copies.has(inode));
        assertThat(copy == null || Objects.requireNonNull(copy.extent()).bundle() > 1).isTrue();
      }
    }
  }

  @Test
  void compare_tierFails_forgetsNothing() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      stage(stage, 10, 10);
      stage.restart();
      AtomicInteger looks = new AtomicInteger();
      stage
          .tiers
          .get(0)
          .faults(
              (point, number) ->
                  point == Point.HAS && looks.incrementAndGet() > 4 ? Fault.FAIL : Fault.NONE);
      compare(stage);

      assertThat(recorded(stage)).isEqualTo(10);
      assertThat(stage.tiers.get(0).hasFailed()).isTrue();
    }
  }

  /** Stopped at the first check. */
  @Test
  void compare_stopped_endsSoon() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      stage(stage, 10, 10);
      stage.restart();
      Files.delete(stage.copyFile(0, stage.inode("f0")));
      stage.copies.compareWithRecords(stage.tiers.get(0), () -> true);

      assertThat(recorded(stage)).isEqualTo(10);
    }
  }

  enum Kind {
    FILES,
    BUNDLES
  }

  /**
   * Copies are added and removed and files disappear meanwhile; after all changes the counts are
   * exact.
   */
  @ParameterizedTest
  @EnumSource(Kind.class)
  void compare_whileCopiesComeAndGo_countsExactly(Kind kind) throws Exception {
    long seed = new Random().nextLong();
    System.out.println("seed " + seed);
    Bundling bundling = kind == Kind.FILES ? Bundling.NONE : Bundling.ALL;
    try (Stage stage = new Stage(directory, ROOM).with(bundling)) {
      List<Inode> inodes = stage(stage, 2000, 5000);
      for (int round = 0; round < 3; round++) {
        churn(stage, inodes, new Random(seed + round));
        stage.restart();
        AtomicBoolean stop = new AtomicBoolean();
        ExecutorService threads = Executors.newFixedThreadPool(2);
        try {
          Random random = new Random(seed - round);
          Future<?> churning =
              threads.submit(
                  () -> {
                    while (!stop.get()) {
                      churn(stage, inodes, random);
                    }
                    return true;
                  });
          compare(stage);
          stop.set(true);
          churning.get();
        } finally {
          threads.shutdownNow();
        }
        stage.awaitIdle();
        assertThat(stage.tiers.get(0).status().copies()).isEqualTo(recorded(stage));
        if (kind == Kind.FILES) {
          assertThat(stage.tiers.get(0).status().usedBytes()).isEqualTo(recorded(stage) * 2 * UNIT);
        }
      }
      for (Inode inode : inodes) {
        stage.copies.evict(inode.number());
      }
      assertThat(stage.tiers.get(0).status().copies()).isZero();
      assertThat(stage.tiers.get(0).status().usedBytes()).isZero();
      assertThat(stage.files(0)).isEmpty();
    }
  }

  private static void churn(Stage stage, List<Inode> inodes, Random random) throws IOException {
    for (int i = 0; i < 100; i++) {
      Inode inode = inodes.get(random.nextInt(inodes.size()));
      switch (random.nextInt(3)) {
        case 0 -> stage.copies.evict(inode.number());
        case 1 -> stage.copies.index().evict(inode.number(), stage.tiers.get(0));
        default -> {
          try {
            stage.read(inode);
          } catch (io.pmfs.posix.FsException e) {
            throw new IOException(e);
          }
        }
      }
    }
  }
}
