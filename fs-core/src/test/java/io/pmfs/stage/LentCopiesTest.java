package io.pmfs.stage;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.compression.Dictionary;
import io.pmfs.compression.ZstdCodec;
import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.FsException;
import io.pmfs.source.FakeStore;
import io.pmfs.stage.copies.Placement;
import io.pmfs.stage.formats.Bundling;
import io.pmfs.stage.formats.Compression;
import io.pmfs.stage.formats.DictionaryFile;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Two mounts of one dataset that may not share a daemon, and the copies of the first. */
final class LentCopiesTest {
  private static final long CAPACITY = 64 << 20;

  @TempDir private Path temporary;
  private Stage first;
  private Stage second;

  @BeforeEach
  void open() throws IOException {
    first = new Stage(temporary.resolve("first"), CAPACITY);
    second = new Stage(temporary.resolve("second"), CAPACITY).with(first);
  }

  @AfterEach
  void close() {
    first.close();
    second.close();
  }

  private static CopyRecord record(Stage stage, Inode inode) {
    return Objects.requireNonNull(stage.namespace.copy(inode.number(), "ssd:0"));
  }

  /** Bytes on the disk of the tiers, each file counted once. */
  private static long room(Stage... stages) throws IOException {
    Set<Object> counted = new HashSet<>();
    long bytes = 0;
    for (Stage stage : stages) {
      for (Path file : stage.files(0)) {
        if (counted.add(Files.getAttribute(file, "unix:fileKey"))) {
          bytes += Files.size(file);
        }
      }
    }
    return bytes;
  }

  @ParameterizedTest
  @CsvSource({"NONE,NONE", "NONE,ALL", "ZSTD,NONE", "ZSTD,ALL"})
  void read_copiesOfAnotherMount_takeNoRoomAndStayWithoutIt(
      Compression.Mode mode, Bundling bundling) throws Exception {
    Compression compression = new Compression(mode, mode == Compression.Mode.NONE ? 0 : 3);
    first.with(bundling).with(compression);
    second.with(bundling);
    List<Inode> files = new ArrayList<>();
    for (Stage stage : List.of(first, second)) {
      files.clear();
      for (int size : List.of(1, 5_000, 300_000, 3_000_000)) {
        files.add(stage.file("f" + size, -size, size));
        if (stage == first) {
          first.stage(files.get(files.size() - 1));
        }
      }
    }
    long room = room(first);
    for (Inode file : files) {
      assertThat(second.read(file)).isEqualTo(Stage.expected(-file.attributes().size(), file));
      assertThat(record(second, file).codec()).isEqualTo(mode == Compression.Mode.NONE ? 0 : 1);
    }
    second.awaitIdle();
    assertThat(second.source.operations().bytes()).isZero();
    assertThat(room(first, second)).isEqualTo(room);

    for (Inode file : files) {
      first.copies.evict(file.number());
    }
    assertThat(first.files(0)).isEmpty();
    second.restart();
    for (Inode file : files) {
      assertThat(second.read(file)).isEqualTo(Stage.expected(-file.attributes().size(), file));
    }
    assertThat(second.source.operations().bytes()).isZero();
    for (Inode file : files) {
      second.copies.evict(file.number());
    }
    assertThat(second.files(0)).isEmpty();
    assertThat(second.tiers.get(0).status().usedBytes()).isZero();
  }

  /** The other mount goes on with its newest bundle while this one reads from it. */
  @Test
  void read_bundleThatGrows_findsWhatWasAppended() throws Exception {
    first.with(Bundling.ALL);
    second.with(Bundling.ALL);
    for (int i = 0; i < 5; i++) {
      first.stage(first.file("f" + i, i, 3_000));
      Inode file = second.file("f" + i, i, 3_000);
      assertThat(second.read(file)).isEqualTo(Stage.expected(i, file));
      Inode own = second.file("own" + i, 100 + i, 3_000);
      second.stage(own);
      first.file("own" + i, 100 + i, 3_000);
    }
    assertThat(second.source.operations().bytes()).isEqualTo(5 * 3_000);
    assertThat(second.files(0)).hasSize(2);
    // After a restart, too, only the first appends to its bundle.
    second.restart();
    second.stage(second.file("later", 200, 3_000));
    for (int i = 0; i < 5; i++) {
      assertThat(first.read(first.inode("f" + i))).isEqualTo(FakeStore.content(i, 0, 3_000));
      assertThat(second.read(second.inode("f" + i))).isEqualTo(FakeStore.content(i, 0, 3_000));
    }
  }

  @Test
  void read_damagedCopyOfAnotherMount_isServedFromTheSource() throws Exception {
    Inode theirs = first.file("f", 7, 3_000_000);
    first.stage(theirs);
    try (RandomAccessFile copy = new RandomAccessFile(first.copyFile(0, theirs).toFile(), "rw")) {
      copy.seek(2_500_000);
      copy.write(copy.read() + 1);
    }
    Inode ours = second.file("f", 7, 3_000_000);
    for (int round = 0; round < 2; round++) {
      assertThat(second.read(ours)).isEqualTo(Stage.expected(7, ours));
      second.awaitIdle();
    }
    assertThat(second.source.operations().bytes()).isEqualTo(3_000_000);
    assertThat(second.copyFile(0, ours)).hasBinaryContent(Stage.expected(7, ours));
  }

  @Test
  void read_copyOfAnotherVersion_isNotTaken() throws Exception {
    first.stage(first.file("f", 7, 5_000));
    second.file("f", 7, 5_000);
    second.store.file("f", 8, 5_000);
    second.importAll();
    Inode ours = second.inode("f");
    assertThat(second.read(ours)).isEqualTo(Stage.expected(8, ours));
  }

  @Test
  void copyFile_ofAnotherMount_isReadByTheKernel() throws Exception {
    first.stage(first.file("f", 7, 3_000_000));
    Inode ours = second.file("f", 7, 3_000_000);
    assertThat(second.stager.copyFile(ours)).isEqualTo(second.copyFile(0, ours));
    assertThat(second.source.operations().bytes()).isZero();
  }

  @Test
  void read_copyWithADictionary_takesTheDictionaryToo() throws Exception {
    List<byte[]> samples = new ArrayList<>();
    for (int i = 0; i < 500; i++) {
      samples.add(
          ("{\"file\": " + i + ", \"label\": \"" + i % 7 + "\"}").repeat(10).getBytes(UTF_8));
    }
    Dictionary dictionary = Objects.requireNonNull(Dictionary.train(samples, 16_000, 3));
    DictionaryFile.save(temporary.resolve("first/tier0"), dictionary);
    first.with(new Compression(Compression.Mode.ZSTD, 3));
    Inode theirs = first.file("f", -7, 5_000);
    first.stage(theirs);
    assertThat(record(first, theirs).codec()).isEqualTo(ZstdCodec.WITH_DICTIONARY);
    Inode ours = second.file("f", -7, 5_000);
    for (int session = 0; session < 2; session++) {
      assertThat(second.read(ours)).isEqualTo(Stage.expected(-7, ours));
      assertThat(record(second, ours).codec()).isEqualTo(ZstdCodec.WITH_DICTIONARY);
      second.restart();
    }
    assertThat(second.source.operations().bytes()).isZero();
  }

  @Test
  void staging_copyOfAnotherMount_isThere() throws Exception {
    first.stage(first.file("f", 7, 3_000_000));
    Inode ours = second.file("f", 7, 3_000_000);
    Staging task = second.stager.staging(Placement.ANYWHERE, Pace.UNLIMITED, bytes -> {});
    assertThat(task.stage(ours).result()).isEqualTo(Staging.Outcome.Result.PRESENT);
    assertThat(second.read(ours)).isEqualTo(Stage.expected(7, ours));
    assertThat(second.source.operations().bytes()).isZero();
  }

  /** As on another disk. */
  @ParameterizedTest
  @CsvSource({"NONE,NONE", "NONE,ALL", "ZSTD,NONE", "ZSTD,ALL"})
  void read_copyThatCannotBeLinked_isReadBlockByBlock(Compression.Mode mode, Bundling bundling)
      throws Exception {
    first.with(bundling).with(new Compression(mode, mode == Compression.Mode.NONE ? 0 : 3));
    for (int size : List.of(1, 5_000, 300_000, 3_000_000)) {
      Inode file = first.file("f", -7, size);
      first.stage(file);
      assertThat(read("f", file, size)).isEqualTo(Stage.expected(-7, file));
    }
  }

  /** Reads the file at a path, of a known version, and compares how much of it was borrowed. */
  private byte[] read(String path, Inode known, long borrowed) throws FsException {
    int size = Math.toIntExact(known.attributes().size());
    try (Lenders lenders = new Lenders("test", () -> List.of(first.asLender()), System::nanoTime);
        BorrowingStore store = new BorrowingStore(first.store, lenders, new DirectMemory());
        var open = store.openVersion(FileName.of(path), known.attributes().version())) {
      ByteBuffer answer = ByteBuffer.allocateDirect(size);
      assertThat(open.read(0, answer)).isEqualTo(size);
      byte[] content = new byte[size];
      answer.flip().get(content);
      assertThat(open.read(size, ByteBuffer.allocateDirect(10))).isZero();
      assertThat(store.borrowedBytes()).isEqualTo(borrowed);
      return content;
    }
  }

  /** A path, a size and a time do not say which file it is. */
  @Test
  void read_fileThatTookTheNameOfACopiedOne_isNotBorrowed() throws Exception {
    first.stage(first.file("f", 7, 5_000));
    first.store.file("other", 8, 5_000);
    first.store.setModified("other", first.inode("f").attributes().modificationTime());
    first.importAll();
    first.stage(first.inode("other"));
    first.store.rename("other", "f");
    assertThat(read("f", first.inode("f"), 0)).isEqualTo(FakeStore.content(8, 0, 5_000));
  }

  @Test
  void read_copiedFileThatWasChangedAndItsTimeSetBack_isNotBorrowed() throws Exception {
    Inode file = first.file("f", 7, 5_000);
    first.stage(file);
    first.store.write("f", 8, 5_000);
    first.store.setModified("f", file.attributes().modificationTime());
    assertThat(read("f", file, 0)).isEqualTo(FakeStore.content(8, 0, 5_000));
  }
}
