package io.pmfs.metadata;

import static io.pmfs.metadata.Samples.file;
import static io.pmfs.metadata.Samples.importAll;
import static io.pmfs.metadata.Samples.numberOf;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.table.Change;
import io.pmfs.table.Family;
import io.pmfs.table.Faults;
import io.pmfs.table.RocksFiles;
import io.pmfs.table.RocksStore;
import io.pmfs.table.StateException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;

final class RocksNamespaceTest extends NamespaceContract {
  private static final String SOURCE = "/data/set";
  private static final long MEMORY = RocksFiles.MIN_MEMORY_BYTES;

  @TempDir Path state;

  @Override
  protected Namespace open(Path directory) {
    return Samples.open(directory.resolve("names"), SOURCE, MEMORY);
  }

  @Test
  void open_otherSource_isRefusedAndNamesBoth() {
    Samples.open(state, SOURCE, MEMORY).close();
    assertThatThrownBy(() -> Samples.open(state, "/other", MEMORY))
        .isInstanceOf(StateException.class)
        .hasMessageContaining(state.toString())
        .hasMessageContaining(SOURCE)
        .hasMessageContaining("/other")
        .hasMessageNotContaining("\n");
    Samples.open(state, SOURCE, MEMORY).close();
  }

  @Test
  void open_whileOpen_isRefused() {
    try (Namespace first = Samples.open(state, SOURCE, MEMORY)) {
      assertThatThrownBy(() -> Samples.open(state, SOURCE, MEMORY))
          .isInstanceOf(StateException.class)
          .hasMessageContaining(state + " is in use by another pmfs");
      assertThat(first.inode(1)).isNull();
    }
  }

  @Test
  void open_newerFormat_isSetAsideForGood() {
    Path names = state.resolve("names");
    for (int i = 1; i <= 5; i++) {
      Samples.open(names, SOURCE, MEMORY).close();
      try (RocksStore store =
          RocksFiles.open(names, List.of(Family.values()), MEMORY, Faults.NONE)) {
        byte[] newer = Values.superblock(new Values.Superblock(Values.FORMAT + 1, SOURCE));
        store.apply(List.of(Change.put(Family.DEFAULT, Keys.SUPERBLOCK, newer)), true);
      }
      openExpecting(names, names + " has format 2", "names.newer-" + i);
    }
    assertThat(state.resolve("names.newer-1")).isDirectory();
  }

  /** Opens what is to be set aside, and leaves a new namespace there. */
  private static void openExpecting(Path directory, String... words) {
    List<String> lines = new ArrayList<>();
    try (Namespace namespace =
        RocksNamespace.open(directory, SOURCE, MEMORY, UUID.randomUUID(), null, lines::add)) {
      assertThat(namespace.failure()).isNull();
      assertThat(namespace.inode(1)).isNull();
      assertThat(namespace.session()).isEqualTo(1);
    }
    assertThat(lines).hasSize(1);
    assertThat(lines.get(0)).contains(words).doesNotContain("\n");
  }

  @Test
  void open_foreignDatabase_isSetAsideUntouched() throws RocksDBException {
    RocksDB.loadLibrary();
    Path names = state.resolve("names");
    try (Options options = new Options().setCreateIfMissing(true);
        RocksDB foreign = RocksDB.open(options, names.toString())) {
      foreign.put("key".getBytes(UTF_8), "value".getBytes(UTF_8));
    }
    openExpecting(names, names + " holds a database", "names.newer-1");
    try (Options options = new Options()) {
      Path aside = state.resolve("names.newer-1");
      assertThat(RocksDB.listColumnFamilies(options, aside.toString())).hasSize(1);
    }
  }

  @Test
  void open_creationInterrupted_isDoneAgain() throws RocksDBException {
    RocksDB.loadLibrary();
    try (Options options = new Options().setCreateIfMissing(true)) {
      RocksDB.open(options, state.toString()).close();
    }
    try (Namespace namespace = Samples.open(state, SOURCE, MEMORY)) {
      assertThat(namespace.session()).isEqualTo(1);
    }
  }

  @Test
  void open_damagedDatabase_isSetAsideAndTheLastOnesAreKept() throws IOException {
    Path names = state.resolve("names");
    for (int i = 1; i <= 5; i++) {
      Samples.open(names, SOURCE, MEMORY).close();
      Files.writeString(names.resolve("CURRENT"), "nonsense");
      openExpecting(names, names.toString(), "names.damaged-" + i);
    }
    try (Stream<Path> there = Files.list(state)) {
      assertThat(there.map(path -> path.getFileName().toString()))
          .containsExactlyInAnyOrder(
              "names", "names.damaged-3", "names.damaged-4", "names.damaged-5");
    }
  }

  @Test
  void open_pathIsFile_isRefused() throws IOException {
    Path file = Files.createFile(state.resolve("file"));
    assertThatThrownBy(() -> Samples.open(file, SOURCE, MEMORY))
        .isInstanceOf(StateException.class)
        .hasMessageContaining(file.toString());
  }

  @Test
  void open_tooLittleMemory_isRefused() {
    assertThatThrownBy(() -> Samples.open(state, SOURCE, MEMORY - 1))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void open_stateSetAside_givesNoNumberOfTheSessionAgain() throws IOException {
    Path names = state.resolve("names");
    Path mark = state.resolve("numbers");
    UUID id = UUID.randomUUID();
    long last;
    try (Namespace first = RocksNamespace.open(names, SOURCE, MEMORY, id, mark, line -> {})) {
      Samples.put(first, Samples.root());
      importAll(first, 1, file("a", 11), file("b", 12));
      last = first.lastNumber();
    }
    Files.writeString(names.resolve("CURRENT"), "nonsense");
    try (Namespace second = RocksNamespace.open(names, SOURCE, MEMORY, id, mark, line -> {})) {
      Samples.put(second, Samples.root());
      importAll(second, 1, file("b", 12));
      assertThat(numberOf(second, 1, "b")).isGreaterThan(last);
    }
  }

  private Namespace opened(String boot) {
    return RocksNamespace.open(
        state,
        SOURCE,
        MEMORY,
        UUID.randomUUID(),
        boot,
        new NumberMark(null, line -> {}),
        line -> {},
        Faults.NONE);
  }

  @Test
  void stoppedCleanly_otherBoot_isFalse() {
    opened("boot one").close();
    try (Namespace same = opened("boot one")) {
      assertThat(same.stoppedCleanly()).isTrue();
    }
    try (Namespace other = opened("boot two")) {
      assertThat(other.stoppedCleanly()).isFalse();
    }
    try (Namespace again = opened("boot two")) {
      assertThat(again.stoppedCleanly()).isTrue();
    }
  }

  @Test
  void session_openedAgainByTheSame_keepsItsNumber() {
    UUID id = UUID.randomUUID();
    try (Namespace first = Samples.open(state, SOURCE, MEMORY, id)) {
      assertThat(first.session()).isEqualTo(1);
    }
    try (Namespace second = Samples.open(state, SOURCE, MEMORY, id)) {
      assertThat(second.session()).isEqualTo(1);
      assertThat(second.opening()).isEqualTo(2);
    }
    try (Namespace third = Samples.open(state, SOURCE, MEMORY, id)) {
      assertThat(third.session()).isEqualTo(1);
      assertThat(third.opening()).isEqualTo(3);
    }
  }

  @Test
  void session_anotherInBetween_isANewOne() {
    UUID id = UUID.randomUUID();
    Samples.open(state, SOURCE, MEMORY, id).close();
    Samples.open(state, SOURCE, MEMORY).close();
    try (Namespace again = Samples.open(state, SOURCE, MEMORY, id)) {
      assertThat(again.session()).isEqualTo(3);
    }
  }

  /** The names that it wrote are not taken for those of the next import. */
  @Test
  void session_resumedAfterAnUnfinishedImport_dropsWhatIsGone() throws IOException {
    UUID id = UUID.randomUUID();
    Path copy = state.resolve("copy");
    try (Namespace namespace = Samples.open(state.resolve("live"), SOURCE, MEMORY, id)) {
      Samples.put(namespace, Samples.root());
      namespace.beginImport(1).add(List.of(file("a", 11), file("gone", 12)));
      copyFiles(state.resolve("live"), copy);
    }
    try (Namespace namespace = Samples.open(copy, SOURCE, MEMORY, id)) {
      importAll(namespace, 1, file("a", 11));
      assertThat(namespace.find(1, FileName.of("gone"))).isNull();
    }
  }

  @Test
  void copiedWhileOpen_asAfterKill_isNotCleanAndKeepsNumbersApart() throws IOException {
    Path copy = state.resolve("copy");
    long last;
    try (Namespace namespace = Samples.open(state.resolve("live"), SOURCE, MEMORY)) {
      Samples.put(namespace, Samples.root());
      importAll(namespace, 1, file("a", 11), file("b", 12));
      last = namespace.lastNumber();
      copyFiles(state.resolve("live"), copy);
    }
    try (Namespace namespace = Samples.open(copy, SOURCE, MEMORY)) {
      assertThat(namespace.stoppedCleanly()).isFalse();
      assertThat(namespace.session()).isEqualTo(2);
      assertThat(namespace.lastNumber()).isGreaterThanOrEqualTo(last);
      assertThat(numberOf(namespace, 1, "b")).isEqualTo(3);
      importAll(namespace, 1, file("a", 11), file("b", 12), file("c", 13));
      assertThat(numberOf(namespace, 1, "c")).isGreaterThan(last);
    }
    try (Namespace namespace = Samples.open(copy, SOURCE, MEMORY)) {
      assertThat(namespace.stoppedCleanly()).isTrue();
    }
  }

  private static void copyFiles(Path from, Path to) throws IOException {
    Files.createDirectories(to);
    try (Stream<Path> files = Files.list(from)) {
      for (Path file : files.toList()) {
        Files.copy(file, to.resolve(file.getFileName()));
      }
    }
  }

  @Test
  void killed_whileImporting_keepsWhatItSaid() throws Exception {
    ProcessBuilder builder =
        new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-cp",
            System.getProperty("java.class.path"),
            EndlessImport.class.getName(),
            state.toString());
    Process process = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
    List<Long> directories = new ArrayList<>();
    try (BufferedReader said =
        new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8))) {
      for (String line; directories.size() < 25 && (line = said.readLine()) != null; ) {
        directories.add(Long.valueOf(line));
      }
    } finally {
      process.destroyForcibly().waitFor();
    }
    assertThat(directories).hasSize(25);
    try (Namespace namespace = Samples.open(state, SOURCE, MEMORY)) {
      assertThat(namespace.stoppedCleanly()).isFalse();
      long highest = 0;
      for (long number : directories) {
        List<DirectoryEntry> entries = Samples.list(namespace, number);
        assertThat(entries).hasSize(EndlessImport.FILES);
        for (DirectoryEntry entry : entries) {
          highest = Math.max(highest, entry.inode());
          assertThat(namespace.inode(entry.inode())).isNotNull();
        }
      }
      assertThat(namespace.lastNumber()).isGreaterThanOrEqualTo(highest);
    }
  }

  /** Imports directory after directory and says the number of each that is finished. */
  static final class EndlessImport {
    static final int FILES = 500;

    private EndlessImport() {}

    public static void main(String[] arguments) {
      Namespace namespace = Samples.open(Path.of(arguments[0]), SOURCE, MEMORY);
      Samples.put(namespace, Samples.root());
      List<SourceEntry> directories =
          IntStream.range(0, 100_000).mapToObj(d -> Samples.directory("d" + d, 10 + d)).toList();
      importAll(namespace, 1, directories);
      List<SourceEntry> files =
          IntStream.range(0, FILES).mapToObj(i -> file("f" + i, 1_000_000 + i)).toList();
      for (SourceEntry directory : directories) {
        long number = numberOf(namespace, 1, directory.name().toString());
        importAll(namespace, number, files);
        System.out.println(number);
      }
    }
  }

  @Test
  void close_whileOthersRead_waitsAndThenRefuses() throws Exception {
    Namespace namespace = Samples.open(state, SOURCE, MEMORY);
    Samples.put(namespace, Samples.root());
    importAll(namespace, 1, IntStream.range(0, 2000).mapToObj(i -> file("f" + i, 10 + i)).toList());
    AtomicLong reads = new AtomicLong();
    AtomicBoolean refused = new AtomicBoolean();
    ExecutorService threads = Executors.newFixedThreadPool(2);
    try {
      Future<?> lookups = threads.submit(() -> readUntilClosed(namespace, reads, refused));
      Future<?> listings = threads.submit(() -> readUntilClosed(namespace, reads, refused));
      while (reads.get() < 5000) {
        Thread.onSpinWait();
      }
      namespace.close();
      lookups.get();
      listings.get();
    } finally {
      threads.shutdownNow();
    }
    assertThat(refused).isTrue();
  }

  private static void readUntilClosed(
      Namespace namespace, AtomicLong reads, AtomicBoolean refused) {
    try {
      while (true) {
        namespace.list(
            1,
            0,
            entry -> {
              reads.incrementAndGet();
              return namespace.inode(entry.inode()) != null;
            });
      }
    } catch (StateException e) {
      refused.set(true);
    }
  }

  @Test
  void inode_damagedRecord_isLostAndTheStateIsSetAside() {
    Path names = state.resolve("names");
    try (RocksNamespace namespace = Samples.open(names, SOURCE, MEMORY)) {
      Samples.put(namespace, Samples.root());
      importAll(namespace, 1, file("a", 11));
      namespace.database().put(Family.INODES, Keys.number(2), new byte[] {1, 2});
    }
    List<String> lines = new ArrayList<>();
    try (RocksNamespace namespace =
        RocksNamespace.open(names, SOURCE, MEMORY, UUID.randomUUID(), null, lines::add)) {
      assertThat(namespace.inode(2)).isNull();
      assertThat(namespace.losses()).isEqualTo(1);
      assertThat(namespace.failure())
          .contains("inode 2 in the namespace in " + names + " is damaged");
      Samples.put(namespace, Samples.root());
      importAll(namespace, 1, file("a", 11));
      namespace.recover();
      assertThat(namespace.failure()).isNull();
      assertThat(namespace.inode(numberOf(namespace, 1, "a"))).isNotNull();
    }
    assertThat(state.resolve("names.damaged-1")).isDirectory();
    assertThat(lines).hasSize(3);
  }

  /** Earlier versions recorded no change time with them. */
  @Test
  void whatTheSourceSaid_withoutATime_isUnknownUntilItIsPutAgain() {
    try (RocksNamespace namespace = Samples.open(state, SOURCE, MEMORY)) {
      byte[] target = Values.bytes(FileName.of("somewhere-else").raw());
      namespace.database().put(Family.TARGETS, Keys.number(2), target);
      namespace.database().put(Family.XATTRS, Keys.number(2), Values.bytes(new byte[0]));
      assertThat(namespace.symbolicLinkTarget(2, Samples.TIME)).isNull();
      assertThat(namespace.extendedAttributes(2, Samples.TIME)).isNull();
      namespace.putSymbolicLinkTarget(2, Samples.TIME, FileName.of("there"));
      assertThat(namespace.symbolicLinkTarget(2, Samples.TIME)).isEqualTo(FileName.of("there"));
    }
  }

  @Test
  void copies_undecodable_areAbsent() {
    RocksNamespace namespace = Samples.open(state, SOURCE, MEMORY);
    try (namespace) {
      namespace.putCopy(2, Samples.copy("pm", 1));
      namespace.database().put(Family.COPIES, Keys.copy(2, "ssd"), new byte[] {9});
      namespace.database().put(Family.XATTRS, Keys.number(2), new byte[0]);
      assertThat(namespace.copies(2)).containsExactly(Samples.copy("pm", 1));
      assertThat(namespace.extendedAttributes(2, Instant.EPOCH)).isNull();
      List<Long> seen = new ArrayList<>();
      namespace.listCopies(0, (number, copy) -> seen.add(number));
      assertThat(seen).containsExactly(2L);
    }
  }
}
