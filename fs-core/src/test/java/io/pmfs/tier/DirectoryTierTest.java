package io.pmfs.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class DirectoryTierTest extends TierContract {
  private static final Tier.Usage EMPTY = Tier.Usage.NONE;

  @TempDir private Path temporary;
  private @Nullable DirectoryTier opened;

  @Override
  protected DirectoryTier newTier(long capacityBytes) throws IOException {
    return open(capacityBytes, 0, EMPTY);
  }

  private Path directory() {
    return temporary.resolve("tier");
  }

  private DirectoryTier open(long capacityBytes, long keepFreeBytes, Tier.@Nullable Usage usage)
      throws IOException {
    return open(
        new TierSettings("ssd:test", "ssd", directory(), capacityBytes, keepFreeBytes),
        usage,
        null);
  }

  /** Opens the tier like a new session, closing the old one. */
  private DirectoryTier open(
      TierSettings settings, Tier.@Nullable Usage usage, @Nullable DaxFiles daxFiles)
      throws IOException {
    if (opened != null) {
      opened.close();
    }
    DirectoryTier tier = new DirectoryTier(settings, usage, daxFiles);
    opened = tier;
    return tier;
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> all = Files.walk(directory())) {
      return all.filter(file -> Files.isRegularFile(file) && !file.endsWith("lock"))
          .sorted()
          .toList();
    }
  }

  private Path file(String name) {
    return directory().resolve("copies").resolve(name);
  }

  @Test
  void open_newDirectory_isPrivate() throws Exception {
    DirectoryTier tier = newTier(1 << 20);
    put(tier, 7, content(1, 10));

    for (Path path : List.of(directory().resolve("copies"), directory().resolve("incoming"))) {
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)))
          .isEqualTo("rwx------");
    }
    assertThat(files()).containsExactly(file("00/00/000007"));
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file("00/00/000007"))))
        .isEqualTo("rw-------");
    assertThat(Files.readAllBytes(file("00/00/000007"))).isEqualTo(content(1, 10));
  }

  @Test
  void open_largeNumbers_haveFilesOfTheirOwn() throws Exception {
    DirectoryTier tier = newTier(1 << 20);
    long[] numbers = {1, 0x12ab34ff, 0xffffff, 0x1000000, Long.MAX_VALUE};
    for (long number : numbers) {
      put(tier, number, content(number, 9));
    }

    assertThat(file("12ab/34/12ab34ff")).exists();
    for (long number : numbers) {
      assertThat(get(tier, number)).isEqualTo(content(number, 9));
    }
  }

  @Test
  void open_sizeOfTheFile_isWhatTheReaderSays() throws Exception {
    DirectoryTier tier = newTier(1 << 20);
    put(tier, 7, content(1, 10));
    Files.write(file("00/00/000007"), content(1, 3));

    try (CopyReader reader = Objects.requireNonNull(tier.open(7, null))) {
      assertThat(reader.size()).isEqualTo(3);
      assertThatThrownBy(() -> reader.read(0, 10).copyTo(ByteBuffer.allocate(10)))
          .isInstanceOf(java.io.EOFException.class);
    }
  }

  @Test
  void reopen_afterCleanStop_keepsCopiesAndUsage() throws Exception {
    DirectoryTier first = newTier(1 << 20);
    put(first, 7, content(1, 5000));
    put(first, 8, content(2, 1));
    Tier.Usage before = first.usage();
    first.close();

    DirectoryTier second = open(1 << 20, 0, before);
    assertThat(second.status().state()).isEqualTo(TierStatus.State.ON);
    assertThat(second.status().usedBytes()).isEqualTo(3 * 4096);
    assertThat(second.status().copies()).isEqualTo(2);
    assertThat(get(second, 7)).isEqualTo(content(1, 5000));
    second.remove(7, null, 5000);
    assertThat(second.status().usedBytes()).isEqualTo(4096);
  }

  @Test
  void reopen_halfWrittenCopies_areCleared() throws Exception {
    DirectoryTier first = newTier(1 << 20);
    create(first, 7, 5000).write(0, ByteBuffer.wrap(content(1, 100)));
    assertThat(files()).hasSize(1);

    newTier(1 << 20);
    assertThat(files()).isEmpty();
  }

  @Test
  void recover_unknownAndForeignFiles_dropsThemAndCountsTheRest() throws Exception {
    DirectoryTier first = newTier(1 << 20);
    for (long number : new long[] {7, 8, 9}) {
      put(first, number, content(number, 5000));
    }
    Files.createDirectories(file("00/01"));
    Files.write(file("00/00/README"), new byte[10]);
    Files.write(file("00/00/00000007"), new byte[10]);
    Files.write(file("00/01/000007"), new byte[10]);
    Files.write(file("stray"), new byte[10]);

    DirectoryTier tier = open(1 << 20, 0, null);
    assertThat(tier.status().state()).isEqualTo(TierStatus.State.RECOVERING);
    assertThat(get(tier, 9)).isEqualTo(content(9, 5000));
    assertThat(tier.create(10, 1)).isNull();
    Recount.of(tier, number -> number != 8);

    assertThat(tier.status().state()).isEqualTo(TierStatus.State.ON);
    assertThat(tier.status().reason()).isNull();
    assertThat(tier.status().usedBytes()).isEqualTo(4 * 4096);
    assertThat(tier.status().copies()).isEqualTo(2);
    assertThat(files()).containsExactly(file("00/00/000007"), file("00/00/000009"));
    put(tier, 10, content(10, 1));
  }

  @Test
  void forEachFile_copiesRemovedMeanwhile_doesNotFail() throws Exception {
    DirectoryTier tier = newTier(64 << 20);
    for (long number = 1; number <= 600; number++) {
      put(tier, number, content(number, 10));
    }
    List<Long> seen = new ArrayList<>();
    tier.census()
        .forEachFile(
            number -> {
              // The walk has already read some names, whose files are gone when it inspects them.
              for (long other = 1; other <= 500 && seen.isEmpty(); other++) {
                tier.remove(other, null, 10);
              }
              seen.add(number);
              return true;
            });

    assertThat(seen).containsAll(LongStream.rangeClosed(501, 600).boxed().toList());
    assertThat(tier.status().copies()).isEqualTo(100);
    assertThat(tier.status().usedBytes()).isEqualTo(100 * 4096);
    assertThat(tier.hasFailed()).isFalse();
  }

  @Test
  void take_afterCleanStop_correctsWhatWasKept() throws Exception {
    DirectoryTier first = newTier(1 << 20);
    put(first, 7, content(1, 5000));
    put(first, 8, content(2, 5000));
    Tier.Usage usage = first.usage();
    Files.delete(file("00/00/000007"));

    DirectoryTier tier = open(1 << 20, 0, usage);
    assertThat(tier.status().state()).isEqualTo(TierStatus.State.ON);
    assertThat(tier.status().usedBytes()).as("not compared yet").isEqualTo(4 * 4096);
    put(tier, 9, content(3, 1));
    Recount.of(tier, number -> true);

    assertThat(tier.status().copies()).isEqualTo(2);
    assertThat(tier.status().usedBytes()).isEqualTo(3 * 4096);
  }

  @Test
  void reopen_emptied_hasItsRoomAtOnce() throws Exception {
    DirectoryTier first = newTier(1 << 20);
    put(first, 7, content(1, 1 << 20));
    Tier.Usage usage = first.usage();
    deleteAll(file("00"));

    DirectoryTier tier = open(1 << 20, 0, usage);
    assertThat(tier.status().usedBytes()).isZero();
    assertThat(tier.status().copies()).isZero();
    put(tier, 8, content(1, 1 << 20));
    tier.remove(7, null, 1 << 20);
    assertThat(tier.status().usedBytes()).as("an estimate, never below zero").isZero();
    Recount.of(tier, number -> true);
    assertThat(tier.status().usedBytes()).isEqualTo(1 << 20);
  }

  @Test
  void remove_fileGone_makesRoom() throws Exception {
    DirectoryTier tier = newTier(8192);
    put(tier, 7, content(1, 8192));
    Files.delete(file("00/00/000007"));
    assertThat(tier.create(8, 1)).isNull();
    tier.remove(7, null, 8192);

    assertThat(tier.status().usedBytes()).isZero();
    assertThat(tier.status().copies()).isZero();
    put(tier, 8, content(2, 8192));
  }

  @Test
  void has_copyGoneOrOfAnotherSize_isFalse() throws Exception {
    DirectoryTier tier = newTier(1 << 20);
    for (long number = 7; number < 11; number++) {
      put(tier, number, content(number, 10));
    }
    Files.delete(file("00/00/000008"));
    Files.write(file("00/00/000009"), content(9, 9));
    Files.delete(file("00/00/00000a"));
    Files.createDirectory(file("00/00/00000a"));

    assertThat(tier.has(7, null, 10)).isTrue();
    assertThat(tier.has(8, null, 10)).isFalse();
    assertThat(tier.has(9, null, 10)).isFalse();
    assertThat(tier.has(10, null, 10)).isFalse();
    assertThat(tier.hasFailed()).isFalse();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void has_directoryMadeAnewOrGone_failsTheTier(boolean again) throws Exception {
    DirectoryTier tier = newTier(1 << 20);
    put(tier, 7, content(1, 10));
    Files.move(directory(), temporary.resolve("aside"));
    if (again) {
      Files.createDirectories(file("00"));
      Files.createDirectory(directory().resolve("incoming"));
    }

    assertThatThrownBy(() -> tier.has(7, null, 10))
        .isInstanceOf(IOException.class)
        .hasMessageContaining(again ? "not the same directory" : "no longer exists");
    assertThat(tier.hasFailed()).isTrue();
    assertThat(tier.create(8, 10)).isNull();
  }

  @Test
  void create_diskMountedOver_failsTheTierAndWritesNothingThere() throws Exception {
    DirectoryTier tier = newTier(1 << 20);
    put(tier, 7, content(1, 10));
    try (SmallDisk disk = SmallDisk.mount(directory(), "1m")) {
      assertThat(disk).isNotNull();
      assertThat(tier.create(8, 10)).isNull();
      assertThat(tier.status().state()).isEqualTo(TierStatus.State.FAILED);
      assertThat(tier.status().reason()).contains("not the same directory", "unmounted");
      assertThat(files()).isEmpty();
    }
  }

  @Test
  void write_emptyDirectoriesPurged_areMadeAgain() throws Exception {
    DirectoryTier tier = newTier(1 << 20);
    put(tier, 7, content(1, 10));
    deleteAll(directory().resolve("incoming"));
    deleteAll(directory().resolve("copies"));
    deleteAll(directory().resolve("bundles"));
    put(tier, 8, content(2, 10));
    CopyWriter bundled = create(tier, 9, 10);
    bundled.append(ByteBuffer.wrap(content(3, 10)));
    assertThat(tier.has(9, bundled.commit(), 10)).isTrue();
    bundled.close();

    assertThat(get(tier, 8)).isEqualTo(content(2, 10));
    assertThat(tier.hasFailed()).isFalse();
  }

  @Test
  void create_lessThanKeepFreeLeft_hasNoRoom() throws Exception {
    DirectoryTier tier = open(1 << 20, 1L << 60, EMPTY);

    assertThat(tier.status().state()).isEqualTo(TierStatus.State.ON);
    assertThat(tier.create(7, 1)).isNull();
    assertThat(tier.status().state()).isEqualTo(TierStatus.State.FULL);
    assertThat(tier.status().reason()).contains("--keep-free");
    assertThat(tier.availableBytes()).isZero();
    assertThat(tier.status().usedBytes()).isZero();
  }

  @Test
  void create_reservationsLeaveLessThanKeepFree_hasNoRoom() throws Exception {
    long free = Files.getFileStore(temporary).getUsableSpace();
    // Other programs write to this disk: half of the free space is far more than they change.
    DirectoryTier tier = open(Long.MAX_VALUE / 4, free / 2, EMPTY);
    CopyWriter first = create(tier, 7, free / 3);

    assertThat(tier.create(8, free / 3)).isNull();
    assertThat(tier.status().state()).as("smaller ones fit").isEqualTo(TierStatus.State.ON);
    first.close();
    create(tier, 8, free / 3).close();
    assertThat(tier.status().usedBytes()).isZero();
  }

  @Test
  void operations_directoryRemovedUnderneath_sayAbsentOrFailTheTier() throws Exception {
    DirectoryTier tier = newTier(1 << 20);
    put(tier, 7, content(1, 10));
    deleteAll(directory());

    assertThat(tier.create(8, 10)).isNull();
    assertThat(tier.status().state()).isEqualTo(TierStatus.State.FAILED);
    assertThat(tier.status().reason()).isNotBlank();
    assertThat(tier.open(7, null)).isNull();
    assertThat(tier.create(9, 1)).isNull();
    tier.remove(7, null, 10);
    tier.close();
  }

  @Test
  void write_directoryRemovedUnderneath_failsTheTier() throws Exception {
    DirectoryTier tier = newTier(1 << 20);
    CopyWriter writer = create(tier, 8, 10);
    deleteAll(directory());

    assertThatThrownBy(() -> writer.write(0, ByteBuffer.wrap(content(1, 10))))
        .isInstanceOf(IOException.class);
    writer.close();
    assertThat(tier.hasFailed()).isTrue();
    assertThat(tier.status().usedBytes()).isZero();
  }

  @Test
  void commit_directoryRemovedUnderneath_failsTheTier() throws Exception {
    DirectoryTier tier = newTier(1 << 20);
    CopyWriter writer = create(tier, 8, 10);
    writer.write(0, ByteBuffer.wrap(content(1, 10)));
    deleteAll(directory());

    assertThatThrownBy(writer::commit).isInstanceOf(IOException.class);
    writer.close();
    assertThat(tier.hasFailed()).isTrue();
  }

  @Test
  void commit_copiesDirectoryRemoved_isMadeAgain() throws Exception {
    DirectoryTier tier = newTier(1 << 20);
    put(tier, 7, content(1, 10));
    deleteAll(file("00"));
    put(tier, 8, content(2, 10));

    assertThat(get(tier, 8)).isEqualTo(content(2, 10));
  }

  @Test
  void open_directoryInPlaceOfTheCopy_costsNoMoreThanThatCopy() throws Exception {
    DirectoryTier tier = newTier(1 << 20);
    put(tier, 7, content(1, 10));
    put(tier, 8, content(2, 10));
    Files.delete(file("00/00/000007"));
    Files.createDirectory(file("00/00/000007"));

    try (CopyReader reader = tier.open(7, null)) {
      if (reader != null) {
        assertThat(reader.size()).isNotEqualTo(10);
      }
    }
    tier.remove(7, null, 10);
    put(tier, 7, content(1, 10));
    assertThat(get(tier, 7)).isEqualTo(content(1, 10));
    assertThat(get(tier, 8)).isEqualTo(content(2, 10));
    assertThat(tier.hasFailed()).isFalse();
  }

  @Test
  void open_pathIsAFile_fails() throws Exception {
    Files.write(directory(), new byte[1]);

    assertThatThrownBy(() -> newTier(1 << 20)).isInstanceOf(IOException.class);
  }

  @Test
  void open_readOnlyFileSystem_fails() throws Exception {
    try (SmallDisk disk = SmallDisk.mount(temporary.resolve("tier"), "1m")) {
      disk.remount("ro");

      assertThatThrownBy(() -> newTier(1 << 20))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("Read-only file system");
    }
  }

  @Test
  void write_fileSystemTurnsReadOnly_failsTheTierAndNotTheReaders() throws Exception {
    try (SmallDisk disk = SmallDisk.mount(directory(), "1m")) {
      DirectoryTier tier = newTier(1 << 20);
      put(tier, 7, content(1, 10));
      disk.turnReadOnly();

      assertThat(get(tier, 7)).isEqualTo(content(1, 10));
      CopyWriter writer = create(tier, 8, 10);
      assertThatThrownBy(() -> writer.write(0, ByteBuffer.wrap(content(1, 10))))
          .isInstanceOf(IOException.class);
      writer.close();
      assertThat(tier.status().state()).isEqualTo(TierStatus.State.FAILED);
      assertThat(tier.open(7, null)).isNull();
    }
  }

  @Test
  void write_diskFullByOthers_isFullUntilThereIsRoomAgain() throws Exception {
    try (SmallDisk disk = SmallDisk.mount(directory(), "1m")) {
      DirectoryTier tier = newTier(64 << 20);
      put(tier, 7, content(1, 100_000));
      CopyWriter writer = create(tier, 8, 500_000);
      disk.fill();

      assertThatThrownBy(() -> writer.write(0, ByteBuffer.wrap(content(1, 500_000))))
          .isInstanceOf(IOException.class);
      writer.close();
      assertThat(tier.status().state()).isEqualTo(TierStatus.State.FULL);
      assertThat(tier.status().usedBytes()).isEqualTo(25 * 4096);
      assertThat(get(tier, 7)).isEqualTo(content(1, 100_000));
      assertThat(tier.create(9, 1)).isNull();
      disk.unfill();
      // The disk is checked again after at most ten seconds; the deadline is twice that.
      Await.until(
          "the tier takes copies again",
          () -> {
            CopyWriter again = tier.create(9, 10);
            if (again != null) {
              again.write(0, ByteBuffer.wrap(content(3, 10)));
              again.commit();
              again.close();
            }
            return again != null;
          });
      assertThat(tier.status().state()).isEqualTo(TierStatus.State.ON);
      assertThat(tier.status().reason()).isNull();
      assertThat(get(tier, 9)).isEqualTo(content(3, 10));
    }
  }

  @Test
  void create_noInodesLeft_isFullAndNotFailed() throws Exception {
    try (SmallDisk disk = SmallDisk.mount(directory(), "1m")) {
      disk.remount("nr_inodes=12");
      DirectoryTier tier = newTier(64 << 20);
      long number = 1;
      while (tier.status().state() == TierStatus.State.ON && number < 100) {
        CopyWriter writer = create(tier, number++, 10);
        try {
          writer.write(0, ByteBuffer.wrap(content(1, 10)));
          writer.commit();
        } catch (IOException e) {
          assertThat(e).hasMessageContaining("No space left");
        } finally {
          writer.close();
        }
      }

      assertThat(tier.status().state()).isEqualTo(TierStatus.State.FULL);
      assertThat(get(tier, 1)).isEqualTo(content(1, 10));
    }
  }

  @Test
  void status_pmKindOnAnOrdinaryDisk_saysWhatItIs() throws Exception {
    TierSettings settings = new TierSettings("pm:test", "pm", directory(), 1 << 20, 0);
    DirectoryTier tier = open(settings, EMPTY, DaxFiles.NONE);

    TierStatus status = tier.status();
    assertThat(status.name()).isEqualTo("pm:test");
    assertThat(status.path()).isEqualTo(directory().toString());
    assertThat(status.capacityBytes()).isEqualTo(1 << 20);
    assertThat(Objects.requireNonNull(status.dax()).real()).isFalse();
    assertThat(status.dax().reason())
        .containsPattern("^(emulated|not persistent memory|not DAX): ");
    assertThat(tier.isDirect()).isFalse();
    assertThat(newTier(1 << 20).status().dax()).isNull();
    assertThat(files()).isEmpty();
  }

  @Test
  void open_inUse_isRefusedUntilItIsClosed() throws Exception {
    TierSettings settings = new TierSettings("ssd:test", "ssd", directory(), 1 << 20, 0);
    DirectoryTier first = newTier(1 << 20);
    CopyWriter writer = create(first, 7, 10);
    writer.write(0, ByteBuffer.wrap(content(1, 10)));

    assertThatThrownBy(() -> new DirectoryTier(settings, EMPTY, null))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("in use");
    writer.commit();
    assertThat(get(first, 7)).isEqualTo(content(1, 10));
    writer.close();
    first.close();
    assertThat(get(newTier(1 << 20), 7)).isEqualTo(content(1, 10));
  }

  @Test
  void open_emptyAndNotCounted_needsNoRecovery() throws Exception {
    DirectoryTier tier = open(1 << 20, 0, null);

    assertThat(tier.status().state()).isEqualTo(TierStatus.State.ON);
    put(tier, 7, content(1, 10));
  }

  @Test
  void settings_negativeSizes_areRefused() {
    assertThatThrownBy(() -> new TierSettings("t", "ssd", temporary, -1, 0))
        .hasMessageContaining("tier t");
    assertThatThrownBy(() -> new TierSettings("t", "ssd", temporary, 0, -1))
        .hasMessageContaining("tier t");
  }

  private static void deleteAll(Path directory) throws IOException {
    try (Stream<Path> all = Files.walk(directory)) {
      for (Path path : all.sorted(java.util.Comparator.reverseOrder()).toList()) {
        Files.delete(path);
      }
    }
  }

  /** A file system of a chosen size, in memory; needs root. */
  private record SmallDisk(Path at) implements AutoCloseable {
    static SmallDisk mount(Path at, String size) throws IOException {
      Files.createDirectories(at);
      int status = run("mount", "-t", "tmpfs", "-o", "size=" + size, "pmfs-test", at.toString());
      assumeTrue(status == 0, "mounting a small tmpfs needs root: mount exited with " + status);
      return new SmallDisk(at);
    }

    void remount(String how) throws IOException {
      assertThat(run("mount", "-o", "remount," + how, at.toString())).isZero();
    }

    /** Affects paths only; open files stay writable. */
    void turnReadOnly() throws IOException {
      assertThat(run("mount", "--bind", at.toString(), at.toString())).isZero();
      remount("bind,ro");
    }

    void fill() throws IOException {
      try (var file = Files.newOutputStream(at.resolve("filler"))) {
        assertThatThrownBy(
                () -> {
                  while (true) {
                    file.write(new byte[4096]);
                  }
                })
            .hasMessageContaining("No space left");
      }
    }

    void unfill() throws IOException {
      Files.delete(at.resolve("filler"));
    }

    private static int run(String... command) throws IOException {
      return new ProcessBuilder(command)
          .redirectErrorStream(true)
          .start()
          .onExit()
          .join()
          .exitValue();
    }

    @Override
    public void close() throws IOException {
      int mounts = 0;
      while (run("umount", "--lazy", at.toString()) == 0) {
        mounts++;
      }
      assertThat(mounts).isBetween(1, 2);
    }
  }
}
