package io.pmfs.metadata;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.table.FaultyDisk;
import io.pmfs.table.RocksFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A disk that fails and recovers at any moment: names are those of the source, and every number
 * that was given out stands for its file.
 */
final class LostNamespaceTest {
  private static final String SOURCE = "/data/set";

  @TempDir Path state;
  private final FaultyDisk disk = new FaultyDisk();

  /** By directory, as a path that ends with a slash; "" is the root. */
  private final Map<String, List<SourceEntry>> source = new LinkedHashMap<>();

  /** Paths by number, as they were given out. */
  private final Map<Long, String> given = new HashMap<>();

  private long sourceInode = 100;
  private int keptStates;
  private @Nullable RocksNamespace opened;

  private RocksNamespace namespace() {
    RocksNamespace namespace = opened;
    if (namespace == null) {
      throw new IllegalStateException("not open");
    }
    return namespace;
  }

  private void open() {
    opened =
        RocksNamespace.open(
            state.resolve("names"),
            SOURCE,
            RocksFiles.MIN_MEMORY_BYTES,
            UUID.randomUUID(),
            "boot",
            new NumberMark(null, line -> {}),
            line -> {},
            disk);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
  void names_diskFailsAndRecovers_areTheSources(long seed) {
    Random random = new Random(seed);
    makeSource(random, "", 3);
    for (int session = 0; session < 3; session++) {
      given.clear();
      open();
      keepState();
      for (int step = 0; step < 400; step++) {
        step(random);
      }
      disk.works();
      namespace().recover();
      assertThat(namespace().failure()).as("seed %d", seed).isNull();
      checkAll();
      namespace().close();
    }
    open();
    given.clear();
    checkAll();
    namespace().close();
  }

  @Test
  void recover_stateCannotBeLookedAt_isALoss_andEndsWithTheNextAttempt() {
    open();
    namespace().putCounter("before", 1);
    disk.failsWrites = true;
    namespace().putCounter("meanwhile", 1);
    int losses = namespace().losses();
    disk.works();
    disk.unchecked = new UncheckedIOException(new IOException("Input/output error"));
    namespace().recover();
    assertThat(namespace().failure()).contains("Input/output error");
    assertThat(namespace().losses()).isGreaterThan(losses);
    disk.unchecked = null;
    namespace().recover();
    assertThat(namespace().failure()).isNull();
    namespace().close();
  }

  private void makeSource(Random random, String path, int depth) {
    List<SourceEntry> entries = new ArrayList<>();
    source.put(path, entries);
    for (int i = 0; i < 3 + random.nextInt(20); i++) {
      entries.add(Samples.file("f" + i, sourceInode++));
    }
    for (int i = 0; depth > 0 && i < 3; i++) {
      entries.add(Samples.directory("d" + i, sourceInode++));
      makeSource(random, path + "d" + i + "/", depth - 1);
    }
  }

  private void step(Random random) {
    switch (random.nextInt(46)) {
      case 0 -> disk.failsWrites = true;
      case 1 -> disk.failsReads = true;
      case 2 -> disk.works();
      case 3, 4 -> namespace().recover();
      case 5 -> checkListing(pick(random, List.copyOf(source.keySet())));
      case 6, 7, 8, 9, 10, 11, 12 -> {
        if (!given.isEmpty()) {
          checkNumber(pick(random, List.copyOf(given.keySet())));
        }
      }
      case 13 -> keepState();
      case 14 -> loseWhatWasNotSynced();
      case 15, 16, 17, 18 -> compareWithSource(pick(random, List.copyOf(source.keySet())));
      default -> {
        String directory = pick(random, List.copyOf(source.keySet()));
        SourceEntry entry = pick(random, source.getOrDefault(directory, List.of()));
        given.put(lookUp(directory + entry.name()), directory + entry.name());
      }
    }
  }

  /** Writes what is known of a directory again, as a comparison with the source does. */
  private void compareWithSource(String directory) {
    long number = directory.isEmpty() ? 1 : lookUp(directory.substring(0, directory.length() - 1));
    namespace().updateInode(number, inode -> inode);
  }

  /** What would be left if the machine lost its memory from now on. */
  private void keepState() {
    if (disk.failsWrites || disk.failsReads) {
      return;
    }
    for (int attempt = 0; attempt < 100; attempt++) {
      Path kept = state.resolve("kept-" + keptStates++);
      List<Path> before = stateFiles();
      try {
        Files.createDirectory(kept);
        for (Path file : before) {
          Files.copy(file, kept.resolve(file.getFileName()));
        }
      } catch (IOException e) {
        continue; // A compaction removed a file meanwhile.
      }
      if (stateFiles().equals(before)) {
        return;
      }
    }
    throw new AssertionError("the state's files change all the time");
  }

  private List<Path> stateFiles() {
    try (Stream<Path> files = Files.list(state.resolve("names"))) {
      return files.sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** A disk that turns read-only forgets what the system had not yet written to it. */
  private void loseWhatWasNotSynced() {
    if (!disk.failsWrites) {
      return;
    }
    Path kept = state.resolve("kept-" + (keptStates - 1));
    if (Files.exists(kept)) {
      Path names = state.resolve("names");
      try {
        Files.move(names, state.resolve("lost-" + keptStates++));
        Files.move(kept, names);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  private static <T> T pick(Random random, List<T> from) {
    return from.get(random.nextInt(from.size()));
  }

  private void checkAll() {
    source.keySet().forEach(this::checkListing);
    given.keySet().forEach(this::checkNumber);
  }

  private void checkListing(String directory) {
    long number = directory.isEmpty() ? 1 : lookUp(directory.substring(0, directory.length() - 1));
    List<String> names = new ArrayList<>();
    int losses;
    do {
      losses = namespace().losses();
      ensureListed(number);
      names.clear();
      try {
        namespace().list(number, 0, entry -> names.add(entry.name().toString()));
      } catch (NamespaceLostException e) {
        assertThat(namespace().losses()).isGreaterThan(losses);
      }
    } while (losses != namespace().losses());
    assertThat(names)
        .containsExactlyElementsOf(
            source.getOrDefault(directory, List.of()).stream()
                .map(entry -> entry.name().toString())
                .toList());
  }

  /** Whether it still is the file as which it was given out. */
  private void checkNumber(long number) {
    String path = given.get(number);
    Inode inode = inode(number);
    assertThat(inode.number()).isEqualTo(number);
    String found = path(number);
    assertThat(found).isEqualTo(path);
    SourceEntry entry = entry(found);
    assertThat(inode.identity()).isEqualTo(entry.identity());
    assertThat(inode.attributes()).isEqualTo(entry.attributes());
  }

  private String path(long number) {
    while (true) {
      int losses = namespace().losses();
      inode(number);
      FileName path = namespace().path(number);
      if (path != null) {
        return path.toString();
      }
      assertThat(namespace().losses()).isGreaterThan(losses);
    }
  }

  private SourceEntry entry(String path) {
    String directory = path.substring(0, path.lastIndexOf('/') + 1);
    return source.getOrDefault(directory, List.of()).stream()
        .filter(entry -> (directory + entry.name()).equals(path))
        .findAny()
        .orElseThrow(() -> new AssertionError("no " + path + " in the source"));
  }

  private long lookUp(String path) {
    long at = 1;
    for (String name : path.split("/", -1)) {
      at = find(at, FileName.of(name)).inode();
    }
    return at;
  }

  private DirectoryEntry find(long directory, FileName name) {
    while (true) {
      int losses = namespace().losses();
      ensureListed(directory);
      DirectoryEntry entry = namespace().find(directory, name);
      if (entry != null && namespace().inode(entry.inode()) != null) {
        return entry; // What a lookup answers; from then on the number is known.
      }
      assertThat(namespace().losses())
          .as("%s in %d is not there", name, directory)
          .isGreaterThan(losses);
    }
  }

  private Inode inode(long number) {
    while (true) {
      int losses = namespace().losses();
      Inode inode = namespace().inode(number);
      if (inode == null && number == 1) {
        namespace().updateInode(1, known -> known == null ? Samples.root() : known);
        inode = namespace().inode(number);
      } else if (inode == null) {
        long seenIn = namespace().seenIn(number);
        assertThat(seenIn).as("where inode %d was", number).isPositive();
        ensureListed(seenIn);
        inode = namespace().adopt(number);
      }
      if (inode != null) {
        return inode;
      }
      assertThat(namespace().losses()).as("inode %d", number).isGreaterThan(losses);
    }
  }

  private void ensureListed(long directory) {
    while (inode(directory).listing() == null) {
      String path = path(directory);
      try {
        Samples.importAll(
            namespace(),
            directory,
            source.getOrDefault(path.isEmpty() ? "" : path + "/", List.of()));
      } catch (NamespaceLostException e) {
        assertThat(namespace().losses()).isPositive();
      }
    }
  }

  @Test
  void open_nothingCanBeRead_beginsInMemoryAndIsRecordedLater() {
    makeSource(new Random(1), "", 1);
    disk.failsReads = true;
    open();
    assertThat(namespace().failure()).contains("Input/output error");
    checkListing("");
    disk.works();
    namespace().recover();
    assertThat(namespace().failure()).isNull();
    assertThat(namespace().inode(1)).isNotNull();
    namespace().close();
    open();
    assertThat(namespace().inode(1)).extracting(Inode::listing).isNotNull();
    assertThat(namespace().stoppedCleanly()).isFalse();
    namespace().close();
  }

  /** Numbers are given out before it is known which ones the state has given out. */
  @Test
  void open_recordedStateCannotBeRead_givesNumbersThatStandAndIsRecordedLater() {
    makeSource(new Random(1), "", 1);
    open();
    checkAll();
    namespace().close();
    disk.failsReads = true;
    open();
    assertThat(namespace().failure()).contains("Input/output error");
    given.put(lookUp("f0"), "f0");
    disk.works();
    namespace().recover();
    assertThat(namespace().failure()).isNull();
    checkAll();
    namespace().close();
  }

  @Test
  void recover_diskForgotWhatWasNotSynced_isListedAgain() {
    makeSource(new Random(1), "", 1);
    open();
    keepState();
    checkAll();
    disk.failsWrites = true;
    source.keySet().forEach(this::compareWithSource);
    loseWhatWasNotSynced();
    disk.works();
    namespace().recover();
    assertThat(namespace().failure()).isNull();
    checkAll();
    namespace().close();
  }

  /** A state that says of a directory that it is listed has to have its names. */
  @Test
  void recover_diskFailsAgainMeanwhile_leavesNoDirectoryListedInPart() throws IOException {
    makeSource(new Random(1), "", 1);
    boolean isDone = false;
    for (int writes = 1; !isDone; writes++) {
      open();
      disk.failsWrites = true;
      checkAll();
      disk.works();
      disk.writesLeft.set(writes);
      namespace().recover();
      isDone = disk.writesLeft.get() > 0;
      namespace().close();
      disk.works();
      open();
      checkAll();
      namespace().close();
      Files.move(state.resolve("names"), state.resolve("after-" + writes));
    }
  }
}
