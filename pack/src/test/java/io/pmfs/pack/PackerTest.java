package io.pmfs.pack;

import static io.pmfs.source.FaultyStore.Operation.LIST;
import static io.pmfs.source.FaultyStore.Operation.OPEN;
import static io.pmfs.source.FaultyStore.Operation.READ;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.shards.PlainDirectory;
import io.pmfs.shards.ShardIndex;
import io.pmfs.shards.ShardStore;
import io.pmfs.source.FaultyStore.Answer;
import io.pmfs.source.FaultyStore.Operation;
import io.pmfs.source.SourceFile;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class PackerTest {
  private static final int MIB = 1 << 20;

  @TempDir Path temporary;
  private PackFixture pack;

  @BeforeEach
  void makeFixture() {
    pack = new PackFixture(temporary.resolve("pack"));
  }

  private void addFiles(int count) {
    pack.source.directory("d");
    for (int i = 0; i < count; i++) {
      pack.source.file("d/%03d".formatted(i), i, 1000L * (i % 30));
    }
  }

  private void assertContents(List<String> paths) throws IOException {
    Map<String, byte[]> contents = pack.contents();
    assertThat(contents.keySet()).containsExactlyInAnyOrderElementsOf(paths);
    for (String path : paths) {
      assertThat(contents.get(path)).as(path).isEqualTo(pack.expected(path));
    }
  }

  private List<String> filesOfSource() {
    return pack.source.paths().stream()
        .filter(p -> pack.source.expectedStatus(p).attributes().type() == FileType.REGULAR)
        .map(FileName::toString)
        .toList();
  }

  private PackManifest manifest(PackResult result) {
    return Objects.requireNonNull(result.manifest());
  }

  @Test
  void pack_ofSomeFiles_hasThemAllAndNothingElse() throws Exception {
    addFiles(40);
    PackManifest manifest = manifest(pack.pack());
    assertContents(filesOfSource());
    assertThat(manifest.shards()).hasSizeGreaterThan(5);
    assertThat(manifest.counts().files()).isEqualTo(40);
    assertThat(manifest.counts().directories()).isEqualTo(2);
    assertThat(pack.written())
        .hasSize(manifest.shards().size() + 2)
        .contains("pmfs-index.sst", "pmfs-pack.json", "shard-000000.tar")
        .doesNotContain("pmfs-pack.partial");
    for (PackManifest.Shard shard : manifest.shards()) {
      assertThat(Files.size(pack.target.resolve(shard.name()))).isEqualTo(shard.size());
      assertThat(shard.size()).isLessThanOrEqualTo(pack.shardBytes);
      assertThat(pack.members(shard.name())).hasSize((int) shard.members());
    }
    assertThat(PackCheck.of(pack.target, 2, new PackProgress())).isEmpty();
    assertThat(pack.source.openFiles()).isZero();
  }

  @Test
  void shard_ofPlan_hasExactlyThePlannedSize() throws Exception {
    addFiles(40);
    pack.source.file("d/" + "n".repeat(120), 1, 1);
    pack.source.file("d/\u00fc", 1, 1);
    pack.source.file(FileName.ofLatin1("d/" + "\u00ff".repeat(120)), 1, 1);
    pack.shardBytes = 20_000;
    List<PlannedShard> plan = pack.plan();
    List<PackManifest.Shard> shards = manifest(pack.pack()).shards();
    assertThat(shards.stream().map(PackManifest.Shard::size))
        .isEqualTo(plan.stream().map(PlannedShard::tarBytes).toList());
  }

  @Test
  void pack_twice_givesTheSameBytes() throws Exception {
    addFiles(40);
    pack.order = PackOrder.parse("shuffle:5");
    List<PackManifest.Shard> first = manifest(pack.pack()).shards();
    PackFixture again = new PackFixture(temporary.resolve("again"));
    again.order = pack.order;
    PackManifest second =
        manifest(
            new Packer(pack.source, again.settings(), PlainDirectory::new, 1, new PackProgress())
                .run());
    assertThat(second.shards()).isEqualTo(first);
  }

  @Test
  void file_ofEverySizeAroundAPiece_isWhole() throws Exception {
    pack.shardBytes = Long.MAX_VALUE;
    for (int size : new int[] {0, 1, 511, 512, 513, MIB - 1, MIB, MIB + 1, 2 * MIB, 5 * MIB + 7}) {
      pack.source.file("f" + size, size, size);
    }
    pack.pack();
    assertContents(filesOfSource());
  }

  @Test
  void shard_ofDeepFiles_endsWithTheirDirectories() throws Exception {
    pack.source.directory("a");
    pack.source.directory("a/b");
    pack.source.directory("a/empty");
    pack.source.file("a/b/1", 1, 1);
    pack.source.file("a/b/2", 1, 1);
    pack.shardBytes = 1;
    pack.pack();
    assertThat(pack.memberNames("shard-000000.tar")).containsExactly("a/b/1", "./", "a/", "a/b/");
    assertThat(pack.memberNames("shard-000001.tar")).containsExactly("a/b/2", "./", "a/", "a/b/");
    assertThat(pack.memberNames("shard-000002.tar")).containsExactly("./", "a/", "a/empty/");
  }

  @Test
  void members_ofEveryType_areAsTarHasThem() throws Exception {
    pack.source.file("a", 7, 100);
    pack.source.hardLink("b", "a");
    pack.source.symbolicLink("link", "to/where");
    pack.source.special("fifo", FileType.FIFO);
    pack.source.special("null", FileType.CHARACTER_DEVICE);
    pack.source.special("socket", FileType.SOCKET);
    PackResult result = pack.pack();
    Map<String, TarArchiveEntry> members = new HashMap<>();
    pack.members("shard-000000.tar").forEach(m -> members.put(m.getName(), m));
    assertThat(members).containsOnlyKeys("./", "a", "b", "link", "fifo", "null");
    assertThat(Objects.requireNonNull(members.get("b")).isLink()).isTrue();
    assertThat(Objects.requireNonNull(members.get("b")).getLinkName()).isEqualTo("a");
    assertThat(Objects.requireNonNull(members.get("link")).getLinkName()).isEqualTo("to/where");
    assertThat(Objects.requireNonNull(members.get("fifo")).isFIFO()).isTrue();
    assertThat(Objects.requireNonNull(members.get("null")).isCharacterDevice()).isTrue();
    assertThat(Objects.requireNonNull(members.get("a")).getLastModifiedTime().toInstant())
        .isEqualTo(pack.source.expectedStatus(FileName.of("a")).attributes().modificationTime());
    assertThat(result.sockets()).containsExactly("socket");
    assertThat(manifest(result).counts()).isEqualTo(new PackManifest.Counts(1, 1, 1, 1, 2));
  }

  @Test
  void pack_whenServed_showsTheSource() throws Exception {
    addFiles(40);
    pack.source.hardLink("d/link", "d/007");
    pack.source.symbolicLink("s", "d/007");
    pack.source.file(FileName.ofLatin1("\u00ff\u00fe" + "x".repeat(120)), 5, 100);
    for (String compression : List.of("none", "zstd:1")) {
      pack = fixtureOf(pack, compression.replace(':', '-'));
      pack.compression = PackCompression.parse(compression);
      pack.pack();
      ShardIndex index = ShardIndex.open(pack.target.resolve("pmfs-index.sst"));
      try (ShardStore served =
          new ShardStore(new PlainDirectory(pack.target), index, new DirectMemory())) {
        for (FileName path : pack.source.paths()) {
          assertServed(served, path);
        }
      }
    }
  }

  private void assertServed(ShardStore served, FileName path) throws FsException {
    Attributes expected = pack.source.expectedStatus(path).attributes();
    Attributes shown = served.status(path).attributes();
    assertThat(shown.mode()).as("%s", path).isEqualTo(expected.mode());
    assertThat(shown.modificationTime()).as("%s", path).isEqualTo(expected.modificationTime());
    assertThat(shown.uid()).isEqualTo(expected.uid());
    assertThat(shown.gid()).isEqualTo(expected.gid());
    if (expected.type() == FileType.REGULAR) {
      assertThat(shown.linkCount()).as("%s", path).isEqualTo(expected.linkCount());
      int size = Math.toIntExact(expected.size());
      ByteBuffer bytes = ByteBuffer.allocateDirect(size + 1);
      try (SourceFile file = served.open(path)) {
        assertThat(file.read(0, bytes)).isEqualTo(size);
      }
      byte[] content = new byte[size];
      bytes.flip().get(content);
      assertThat(content).as("%s", path).isEqualTo(pack.source.expected(path, 0, size));
    }
  }

  // Interruptions.

  /** Packs until an operation of the source is asked for the given time. */
  private void interruptAt(int operation) throws Exception {
    Packer packer = pack.packer();
    pack.faulty.on().nth(operation).run(path -> pack.progress.cancel());
    try {
      packer.run();
    } catch (CancellationException e) {
      assertThat(pack.written()).doesNotContain("pmfs-pack.json").contains("pmfs-pack.partial");
    } finally {
      pack.faulty.clearFaults();
    }
  }

  @Test
  void pack_interruptedWhileItIndexes_isNotCompleteAndGoesOn() throws Exception {
    addFiles(12);
    pack.stores =
        directory -> {
          pack.progress.cancel();
          return new PlainDirectory(directory);
        };

    assertThatThrownBy(pack::pack).isInstanceOf(CancellationException.class);
    assertThat(pack.written())
        .contains("pmfs-pack.partial")
        .doesNotContain("pmfs-pack.json")
        .noneMatch(name -> name.startsWith("pmfs-index"));
    pack.stores = PlainDirectory::new;
    assertThat(pack.pack().keptShards()).isPositive();
  }

  @Test
  void pack_interruptedAtEveryStep_goesOnToTheSameResult() throws Exception {
    addFiles(12);
    List<PackManifest.Shard> expected = manifest(pack.pack()).shards();
    int kept = 0;
    for (int operation = 1; operation < 80; operation++) {
      pack = fixtureOf(pack, "pack" + operation);
      interruptAt(operation);
      if (!pack.written().contains("pmfs-pack.json")) {
        PackResult result = pack.pack();
        kept = Math.max(kept, result.keptShards());
        assertThat(manifest(result).shards()).isEqualTo(expected);
      }
      assertContents(filesOfSource());
      assertThat(pack.source.openFiles()).isZero();
    }
    assertThat(kept).as("an interruption between two shards was tried").isPositive();
  }

  private PackFixture fixtureOf(PackFixture other, String name) {
    return new PackFixture(other.source, temporary.resolve(name));
  }

  @Test
  void pack_thatGoesOn_writesNoFinishedShardAgain() throws Exception {
    addFiles(40);
    pack.faulty.on(OPEN).of("d/039").fail(Errno.EIO);
    assertThat(pack.pack().manifest()).isNull();
    Map<String, Object> before = new HashMap<>();
    for (String name : pack.written()) {
      before.put(
          name, Files.readAttributes(pack.target.resolve(name), "unix:ino,lastModifiedTime"));
    }
    pack.faulty.clearFaults();
    PackResult result = pack.pack();
    assertThat(result.keptShards()).isEqualTo(manifest(result).shards().size() - 1);
    for (PackManifest.Shard shard : manifest(result).shards()) {
      if (before.containsKey(shard.name())) {
        assertThat(
                (Object)
                    Files.readAttributes(
                        pack.target.resolve(shard.name()), "unix:ino,lastModifiedTime"))
            .isEqualTo(before.get(shard.name()));
      }
    }
    assertContents(filesOfSource());
  }

  @Test
  void shard_damagedBetweenRuns_isWrittenAgain() throws Exception {
    addFiles(40);
    pack.faulty.on(OPEN).of("d/039").fail(Errno.EIO);
    pack.pack();
    pack.faulty.clearFaults();
    byte[] bytes = Files.readAllBytes(pack.target.resolve("shard-000000.tar"));
    bytes[bytes.length / 2]++;
    Files.write(pack.target.resolve("shard-000000.tar"), bytes);
    Files.delete(pack.target.resolve("shard-000001.tar"));
    PackResult result = pack.pack();
    assertThat(result.keptShards()).isEqualTo(manifest(result).shards().size() - 3);
    assertContents(filesOfSource());
  }

  @Test
  void source_changedBetweenRuns_keepsOnlyShardsThatAreTheSame() throws Exception {
    addFiles(40);
    pack.faulty.on(OPEN).of("d/000").fail(Errno.EIO);
    pack.pack();
    pack.faulty.clearFaults();
    pack.source.write("d/020", 99, 20_000);
    PackResult result = pack.pack();
    assertThat(result.keptShards()).isEqualTo(manifest(result).shards().size() - 2);
    assertContents(filesOfSource());
    assertThat(pack.written()).hasSize(manifest(result).shards().size() + 2);
  }

  @Test
  void marker_cutShort_losesItsLastLineAlone() throws Exception {
    addFiles(40);
    pack.faulty.on(OPEN).of("d/039").fail(Errno.EIO);
    pack.pack();
    pack.faulty.clearFaults();
    Path marker = pack.target.resolve("pmfs-pack.partial");
    byte[] bytes = Files.readAllBytes(marker);
    int lines = Files.readAllLines(marker).size();
    Files.write(marker, java.util.Arrays.copyOf(bytes, bytes.length - 10));
    PackResult result = pack.pack();
    assertThat(result.keptShards()).isEqualTo(lines - 2);
    assertContents(filesOfSource());
  }

  @Test
  void indexing_thatFails_leavesAPackToGoOnWith() throws Exception {
    addFiles(10);
    pack.stores =
        directory -> {
          throw new FsException(Errno.EIO, "no index");
        };
    assertThatThrownBy(pack::pack).isInstanceOf(IOException.class);
    assertThat(pack.written()).contains("pmfs-pack.partial").doesNotContain("pmfs-pack.json");
    pack.stores = PlainDirectory::new;
    PackResult result = pack.pack();
    assertThat(result.keptShards()).isEqualTo(manifest(result).shards().size());
  }

  // What cannot be read.

  @Test
  void file_thatFailsOnce_isReadAgain() throws Exception {
    addFiles(3);
    pack.source.file("large", 5, 3 * MIB);
    for (Operation operation : List.of(Operation.OPEN, Operation.READ, Operation.FILE_STATUS)) {
      for (String path : List.of("d/002", "large")) {
        pack = fixtureOf(pack, operation + path.replace('/', '-'));
        pack.faulty.on(operation).of(path).first().fail(Errno.EIO);
        assertThat(manifest(pack.pack()).leftOut()).isEmpty();
        assertContents(filesOfSource());
        pack.faulty.clearFaults();
      }
    }
  }

  @Test
  void file_thatCannotBeRead_keepsThePackFromBeingComplete() throws Exception {
    addFiles(40);
    pack.faulty.on(READ).of("d/013").fail(Errno.EIO);
    PackResult result = pack.pack();
    assertThat(result.manifest()).isNull();
    assertThat(result.unreadable()).containsExactly(new Unreadable("d/013", "EIO"));
    assertThat(pack.written()).contains("pmfs-pack.partial").doesNotContain("pmfs-pack.json");
  }

  @Test
  void file_thatCannotBeRead_isLeftOutWhenAskedTo() throws Exception {
    addFiles(40);
    pack.source.file("large", 5, 3 * MIB);
    pack.skipUnreadable = true;
    pack.faulty.faults(
        (o, path, offset) -> {
          boolean inTheMiddle = path.toString().equals("large") && offset == 2 * MIB;
          if (o == Operation.READ && (inTheMiddle || path.toString().equals("d/013"))) {
            throw new FsException(Errno.EIO, path.toString());
          }
          return Answer.WHOLE;
        });
    PackManifest manifest = manifest(pack.pack());
    assertThat(manifest.leftOut())
        .containsExactlyInAnyOrder(new Unreadable("d/013", "EIO"), new Unreadable("large", "EIO"));
    assertThat(manifest.counts().files()).isEqualTo(39);
    pack.faulty.clearFaults();
    List<String> rest =
        filesOfSource().stream().filter(f -> !f.equals("large") && !f.equals("d/013")).toList();
    assertContents(rest);
    assertThat(pack.source.openFiles()).isZero();
  }

  @Test
  void pack_withWhatWasLeftOut_isCompletedWithoutTheOption() throws Exception {
    addFiles(40);
    pack.skipUnreadable = true;
    pack.faulty.on(OPEN).of("d/013").fail(Errno.EACCES);
    pack.stores =
        directory -> {
          throw new FsException(Errno.EIO, "no index");
        };
    assertThatThrownBy(pack::pack).isInstanceOf(IOException.class);
    pack.faulty.clearFaults();
    pack.stores = PlainDirectory::new;
    pack.skipUnreadable = false;
    PackResult result = pack.pack();
    assertThat(result.keptShards()).isEqualTo(manifest(result).shards().size() - 1);
    assertContents(filesOfSource());
  }

  @Test
  void hardLink_whoseFirstNameCannotBeRead_isReportedByBothNames() throws Exception {
    pack.source.file("a", 1, 10);
    pack.source.hardLink("b", "a");
    pack.faulty.on(OPEN).of("a").fail(Errno.EACCES);
    assertThat(pack.pack().unreadable()).extracting(Unreadable::path).containsExactly("a", "b");
  }

  @Test
  void directory_thatCannotBeListed_isReported() throws Exception {
    addFiles(3);
    pack.faulty.on(LIST).of("d").fail(Errno.EACCES);
    assertThat(pack.pack().unreadable()).containsExactly(new Unreadable("d", "EACCES"));
  }

  @Test
  void file_thatGrowsAfterTheListing_isNotPackedWrong() throws Exception {
    addFiles(40);
    pack.faulty.on(OPEN).first().run(path -> pack.source.write("d/039", 5, 20));
    PackResult result = pack.pack();
    assertThat(result.unreadable())
        .containsExactly(
            new Unreadable("d/039", "has another size or type than when it was listed"));
  }

  @ParameterizedTest
  @ValueSource(ints = {1000, 3 * MIB})
  void file_thatChangesWhileItIsRead_isReadAgain(int size) throws Exception {
    pack.source.file("a", 1, size);
    pack.shardBytes = 1 << 30;
    int lastPiece = (size - 1) / MIB * MIB;
    pack.faulty.on(READ).at(lastPiece).first().run(path -> pack.source.write("a", 2, size));
    assertThat(manifest(pack.pack()).leftOut()).isEmpty();
    assertContents(List.of("a"));
  }

  // The directory.

  @Test
  void directory_withAnythingElse_isRefusedAndLeftAlone() throws Exception {
    addFiles(3);
    Files.createDirectories(pack.target);
    Path other = Files.writeString(pack.target.resolve("notes.txt"), "mine");
    assertThatThrownBy(pack::pack)
        .isInstanceOf(PackException.class)
        .hasMessageContaining("notes.txt");
    assertThat(pack.written()).containsExactly("notes.txt");
    assertThat(other).hasContent("mine");
  }

  @Test
  void directory_withShardsOfSomebody_isRefused() throws Exception {
    Files.createDirectories(pack.target);
    Files.writeString(pack.target.resolve("shard-000000.tar"), "theirs");
    assertThatThrownBy(pack::pack).isInstanceOf(PackException.class);
    assertThat(pack.written()).containsExactly("shard-000000.tar");
  }

  @Test
  void directory_withAFinishedPack_isRefused() throws Exception {
    addFiles(3);
    pack.pack();
    assertThatThrownBy(pack::pack)
        .isInstanceOf(PackException.class)
        .hasMessageContaining("finished");
  }

  @Test
  void directory_withAPackOfOtherOptions_isRefused() throws Exception {
    addFiles(3);
    pack.faulty.on(OPEN).of("d/001").fail(Errno.EIO);
    pack.pack();
    pack.order = PackOrder.parse("shuffle:1");
    assertThatThrownBy(pack::pack)
        .isInstanceOf(PackException.class)
        .hasMessageContaining("other options");
  }

  @Test
  void directory_withAPackOfAnotherSource_isRefused() throws Exception {
    addFiles(3);
    pack.faulty.on(OPEN).of("d/001").fail(Errno.EIO);
    pack.pack();
    pack.sourceName = "/another";
    assertThatThrownBy(pack::pack)
        .isInstanceOf(PackException.class)
        .hasMessageContaining("another source");
  }

  @Test
  void directory_thatIsBeingWritten_isRefused() throws Exception {
    addFiles(3);
    try (PackDirectory held = PackDirectory.open(pack.settings())) {
      assertThat(held.finished("shard-000000.tar")).isNull();
      assertThatThrownBy(pack::pack)
          .isInstanceOf(PackException.class)
          .hasMessageContaining("another pmfs pack");
    }
    assertThat(pack.pack().manifest()).isNotNull();
  }

  @Test
  void directory_thatTwoPacksBeginAtOnce_isOfOneOfThem() throws Exception {
    for (int i = 0; i < 50; i++) {
      PackSettings settings = pack.settings();
      CyclicBarrier begin = new CyclicBarrier(2);
      Callable<@Nullable PackDirectory> open =
          () -> {
            begin.await();
            try {
              return PackDirectory.open(settings);
            } catch (PackException e) {
              return null;
            }
          };
      FutureTask<@Nullable PackDirectory> other = new FutureTask<>(open);
      Thread thread = new Thread(other);
      thread.start();
      try (PackDirectory mine = open.call();
          PackDirectory theirs = other.get()) {
        assertThat(mine == null).isNotEqualTo(theirs == null);
      }
      Files.delete(settings.directory().resolve(PackDirectory.MARKER));
    }
  }

  @Test
  void markerThatACrashCutShort_isBegunAgain() throws Exception {
    addFiles(3);
    Files.createDirectories(pack.target);
    Files.writeString(pack.target.resolve(PackDirectory.MARKER), "{\"version\":");
    assertThat(pack.pack().manifest()).isNotNull();
  }

  @Test
  void check_ofDamagedShards_namesThem() throws Exception {
    addFiles(40);
    pack.pack();
    Path first = pack.target.resolve("shard-000000.tar");
    byte[] bytes = Files.readAllBytes(first);
    bytes[3]++;
    Files.write(first, bytes);
    Files.delete(pack.target.resolve("shard-000001.tar"));
    Files.write(pack.target.resolve("shard-000002.tar"), new byte[5]);
    assertThat(PackCheck.of(pack.target, 2, new PackProgress()))
        .hasSize(3)
        .satisfiesExactly(
            line -> assertThat(line).startsWith("shard-000000.tar: differs"),
            line -> assertThat(line).startsWith("shard-000001.tar: is missing"),
            line -> assertThat(line).startsWith("shard-000002.tar: has 5 bytes"));
  }

  @Test
  void check_ofAnUnfinishedPack_saysSo() throws Exception {
    addFiles(3);
    pack.faulty.on(OPEN).of("d/001").fail(Errno.EIO);
    pack.pack();
    assertThat(PackCheck.of(pack.target, 2, new PackProgress()))
        .singleElement()
        .asString()
        .contains("not finished");
  }

  @Test
  void check_ofSomethingElse_isRefused() throws Exception {
    Files.createDirectories(pack.target);
    assertThatThrownBy(() -> PackCheck.of(pack.target, 2, new PackProgress()))
        .isInstanceOf(PackException.class)
        .hasMessageContaining("not a pack");
  }

  @Test
  void plan_writesNothing() throws Exception {
    addFiles(40);
    PackResult plan = pack.packer().plan();
    assertThat(pack.written()).isEmpty();
    assertThat(manifest(plan).shards()).hasSameSizeAs(manifest(pack.pack()).shards());
  }
}
