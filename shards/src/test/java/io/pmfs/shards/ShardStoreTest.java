package io.pmfs.shards;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.compression.SeekableWriter;
import io.pmfs.compression.ZstdCodec;
import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.FileName;
import io.pmfs.source.CountedBackingStore;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceSequence;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The served tree equals the one that GNU tar unpacks. */
final class ShardStoreTest {
  /** A tree with everything that a tar file can hold, except devices, which need root. */
  private static final String TREE =
      """
      mkdir -p tree/d/e tree/empty && cd tree
      printf hello > a; : > nothing; head -c 70000 /dev/urandom > d/big; printf x > d/e/x
      ln -s a link; ln -s ../nowhere d/dangling; ln d/big d/e/hard; ln link d/hardlink
      mkfifo pipe; chmod 4751 a; chmod 1777 empty; chmod 000 nothing
      name=$(printf 'n%.0s' {1..200}); mkdir -p long/$name/$name; printf deep > long/$name/$name/$name
      ln -s $name/$name long/target; ln long/$name/$name/$name long/hard
      printf b > "$(printf 'caf\\351')"; printf n > $'new\\nline'; printf s > ' sp ace '
      printf 1 > 'a.b'; printf 2 > 'a!'; mkdir 'a-'; printf 3 > 'a-/x'; mkdir $'a\\001'; printf 4 > $'a\\001/y'
      touch -d '2001-02-03 04:05:06.123456789' a; touch -d '1960-01-01' d/e/x; touch -h -d '2010-01-01' link
      touch -d '2002-02-02' d/e long empty
      """;

  /** Changes of a tar file that keep its content. */
  private static final String TIME_ALONE = "touch -d 2020-01-01 %1$s";

  private static final String SIZE_ALONE =
      "touch -r %1$s as-before; truncate -s +10240 %1$s; touch -r as-before %1$s";

  @TempDir private Path directory;

  private ShardStore store(IndexForm form, String... shards) throws Exception {
    Path index = directory.resolve("index");
    BackingStores.build(directory, form, index, shards);
    return new ShardStore(
        new PlainDirectory(directory), ShardIndex.open(index), new DirectMemory());
  }

  @ParameterizedTest
  @ValueSource(strings = {"gnu", "pax", "posix", "oldgnu"})
  void tree_ofTar_isWhatTarUnpacks(String format) throws Exception {
    Shell.run(
        directory,
        TREE
            + "cd ..; tar --format=%s -cf t.tar -C tree .; mkdir out; tar -xpf t.tar -C out"
                .formatted(format));
    try (ShardStore store = store(new IndexForm(true, false), "t.tar")) {
      assertThat(Listing.ofStore(store)).isEqualTo(Listing.ofDirectory(directory.resolve("out")));
    }
  }

  @Test
  void tree_ofShards_isOneDirectoryEach() throws Exception {
    Shell.run(
        directory,
        TREE
            + """
            cd ..; mkdir out out/one out/two
            tar -cf one.tar -C tree d a; tar -xpf one.tar -C out/one
            tar -cf two.tar -C tree long 'a-'; tar -xpf two.tar -C out/two
            chmod 755 out/one out/two; touch -r one.tar out/one; touch -r two.tar out/two
            """);
    try (ShardStore store = store(new IndexForm(false, false), "one.tar", "two.tar")) {
      assertThat(Listing.ofStore(store)).isEqualTo(Listing.ofDirectory(directory.resolve("out")));
    }
  }

  @Test
  void tree_ofCompressedShards_isTheSame() throws Exception {
    Shell.run(directory, TREE + "cd ..; tar -cf t.tar -C tree .; mkdir out; tar -xpf t.tar -C out");
    byte[] tar = Files.readAllBytes(directory.resolve("t.tar"));
    try (ZstdCodec codec = new ZstdCodec(1);
        SeekableWriter writer =
            new SeekableWriter(
                Files.newOutputStream(directory.resolve("t.tar.zst")), codec, 1000)) {
      writer.write(tar);
      writer.finish();
    }
    try (ShardStore store = store(new IndexForm(true, false), "t.tar.zst")) {
      assertThat(Listing.ofStore(store)).isEqualTo(Listing.ofDirectory(directory.resolve("out")));
    }
  }

  @Test
  void build_compressedAsOneStream_isRefused() throws Exception {
    Shell.run(directory, "echo x > x; tar -c x | zstd -q > t.tar.zst");

    assertThatThrownBy(() -> store(new IndexForm(true, false), "t.tar.zst"))
        .isInstanceOf(ShardException.class)
        .hasMessageContaining("repack it with pmfs pack");
  }

  @Test
  void sparseFile_hasItsHoles() throws Exception {
    Shell.run(
        directory,
        """
        truncate -s 1000000 f; printf piece | dd of=f bs=1 seek=500000 conv=notrunc status=none
        tar -S --hole-detection=raw -cf t.tar f
        """);
    try (ShardStore store = store(new IndexForm(true, false), "t.tar");
        SourceFile file = store.open(FileName.of("f"))) {
      byte[] original = Files.readAllBytes(directory.resolve("f"));
      assertThat(Listing.content(file)).isEqualTo(original);
      long data = file.seekData(0);
      long hole = file.seekHole(data);
      assertThat(data).isPositive().isLessThanOrEqualTo(500_000);
      assertThat(hole).isGreaterThanOrEqualTo(500_005).isLessThan(1_000_000);
      assertThat(file.seekHole(0)).isZero();
      assertThat(file.seekData(data + 1)).isEqualTo(data + 1);
      assertThatThrownBy(() -> file.seekData(hole)).hasMessageStartingWith("ENXIO");
      assertThatThrownBy(() -> file.seekHole(1_000_000)).hasMessageStartingWith("ENXIO");
      assertThat(store.status(FileName.of("f")).attributes().blocks()).isLessThan(100);
    }
  }

  @Test
  void open_manyMembers_opensTheShardOnce() throws Exception {
    Shell.run(directory, "mkdir t; for i in $(seq 300); do echo $i > t/$i; done; tar -cf t.tar t");
    Path index = directory.resolve("index");
    CountedBackingStore files = new CountedBackingStore(new PlainDirectory(directory));
    new IndexBuilder(files, new IndexForm(true, false), 1, progress -> {}, new DirectMemory())
        .build(List.of(FileName.of("t.tar")), index);
    long indexing = files.operations().total();
    try (ShardStore store =
        new ShardStore(files, ShardIndex.open(index), new DirectMemory(), 2, () -> 0)) {
      assertThat(Listing.ofStore(store)).hasSize(301);
    }

    assertThat(indexing).as("requests for the index").isLessThan(10);
    assertThat(files.operations().opens()).isEqualTo(2);
    assertThat(files.operations().lists()).isZero();
  }

  @Test
  void open_moreShardsThanMayBeOpen_closesTheOldest() throws Exception {
    Shell.run(directory, "for i in 1 2 3 4; do echo content$i > f; tar -cf $i.tar f; done; rm f");
    CountedBackingStore files = new CountedBackingStore(new PlainDirectory(directory));
    Path index = directory.resolve("index");
    BackingStores.build(
        directory, new IndexForm(false, false), index, "1.tar", "2.tar", "3.tar", "4.tar");
    try (ShardStore store =
        new ShardStore(files, ShardIndex.open(index), new DirectMemory(), 2, () -> 0)) {
      for (int shard : new int[] {1, 2, 1, 3, 1, 4, 2}) {
        assertThat(new String(Listing.content(store, FileName.of(shard + "/f")), UTF_8))
            .isEqualTo("content" + shard + "\n");
      }
    }

    assertThat(files.operations().opens()).as("1, 2, 3, 4, and 2 again").isEqualTo(5);
  }

  @Test
  void open_shardThatChanged_isStale() throws Exception {
    Shell.run(directory, "echo one > f; tar -cf t.tar f");
    AtomicLong clock = new AtomicLong();
    Path index = directory.resolve("index");
    BackingStores.build(directory, new IndexForm(true, false), index, "t.tar");
    try (ShardStore store =
        new ShardStore(
            new PlainDirectory(directory),
            ShardIndex.open(index),
            new DirectMemory(),
            2,
            clock::get)) {
      SourceFile open = store.open(FileName.of("f"));
      Shell.run(directory, "echo two > f; tar -cf t.tar f; touch -d 2020-01-01 t.tar");

      assertThatThrownBy(open::status)
          .hasMessage("ESTALE: t.tar changed since it was indexed; unmount, and mount it again");
      clock.addAndGet(2_000_000_000);
      assertThatThrownBy(() -> store.open(FileName.of("f"))).hasMessageStartingWith("ESTALE");
      open.close();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {TIME_ALONE, SIZE_ALONE})
  void open_shardThatChangedBeforeItWasOpened_isStale(String change) throws Exception {
    Shell.run(directory, "echo one > f; tar -cf t.tar f");
    try (ShardStore store = store(new IndexForm(true, false), "t.tar")) {
      Shell.run(directory, change.formatted("t.tar"));

      assertThatThrownBy(() -> store.open(FileName.of("f"))).hasMessageStartingWith("ESTALE");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {TIME_ALONE, SIZE_ALONE})
  void identity_ofMembers_changesWithTheirShardAlone(String change) throws Exception {
    Shell.run(directory, "echo one > f; mkdir d; for i in 1 2; do tar -cf $i.tar f d; done");
    IndexForm form = new IndexForm(false, false);
    Map<String, Long> before = identities(form);
    Shell.run(directory, change.formatted("2.tar"));
    Map<String, Long> after = identities(form);

    assertThat(after.get("1/f")).isEqualTo(before.get("1/f"));
    assertThat(after.get("1/d")).isEqualTo(before.get("1/d"));
    assertThat(after.get("2/f")).isNotEqualTo(before.get("2/f"));
    assertThat(after.get("2/d")).isNotEqualTo(before.get("2/d"));
    assertThat(after.get("2")).isNotEqualTo(before.get("2"));
    assertThat(new HashSet<>(before.values())).hasSameSizeAs(before.values());
  }

  /** Its names come from all shards. */
  @Test
  void identity_ofADirectoryOfShardsThatLieTogether_changesWithEachOfThem() throws Exception {
    Shell.run(directory, "mkdir d; for i in 1 2; do echo > d/$i; tar -cf $i.tar d; rm d/$i; done");
    IndexForm form = new IndexForm(true, false);
    Map<String, Long> before = identities(form, "d", "d/2");
    Shell.run(directory, TIME_ALONE.formatted("1.tar"));
    Map<String, Long> after = identities(form, "d", "d/2");

    assertThat(after.get("d")).isNotEqualTo(before.get("d"));
    assertThat(after.get("d/2")).isEqualTo(before.get("d/2"));
  }

  private Map<String, Long> identities(IndexForm form) throws Exception {
    return identities(form, "1", "2", "1/f", "1/d", "2/f", "2/d");
  }

  private Map<String, Long> identities(IndexForm form, String... paths) throws Exception {
    Map<String, Long> identities = new HashMap<>();
    try (ShardStore store = store(form, "1.tar", "2.tar")) {
      for (String path : paths) {
        identities.put(path, store.status(FileName.of(path)).identity().inode());
      }
    }
    return identities;
  }

  @Test
  void sequence_ofAShard_hasItsFilesInOneReading() throws Exception {
    Shell.run(
        directory,
        """
        mkdir t; for i in $(seq 100); do head -c $((i * 977)) /dev/urandom > t/$i; done
        echo old > t/over; ln t/1 t/link; ln -s 1 t/soft; tar -cf 1.tar t
        rm -r t; mkdir t; echo new > t/over; tar -cf 2.tar t
        mkdir out; tar -xf 1.tar -C out; tar -xf 2.tar -C out
        """);
    Path index = directory.resolve("index");
    CountedBackingStore files = new CountedBackingStore(new PlainDirectory(directory));
    BackingStores.build(directory, new IndexForm(true, false), index, "1.tar", "2.tar");
    List<String> seen = new ArrayList<>();
    ByteBuffer window = ByteBuffer.allocateDirect(8 << 20);
    AtomicInteger paced = new AtomicInteger();
    try (ShardStore store = new ShardStore(files, ShardIndex.open(index), new DirectMemory())) {
      assertThat(store.sequenceCount()).isEqualTo(2);
      for (int number = 0; number < 2; number++) {
        try (SourceSequence sequence = store.sequence(number, window, paced::incrementAndGet)) {
          for (FileName path = sequence.next(); path != null; path = sequence.next()) {
            seen.add(path.toString());
            try (SourceFile file = sequence.open()) {
              assertThat(file.status()).isEqualTo(store.status(path));
              assertThat(Listing.content(file))
                  .as("%s", path)
                  .isEqualTo(Files.readAllBytes(directory.resolve("out/" + path)));
            }
          }
        }
      }
    }

    assertThat(seen).hasSize(101).doesNotHaveDuplicates();
    assertThat(files.operations().reads()).as("of 5 MB in windows of 8 MiB").isEqualTo(2);
    assertThat(files.operations().opens()).isEqualTo(2);
    assertThat(paced).as("each a read and a look at the shard").hasValue(2 * 2);
    assertThat(files.operations().stats()).as("of shards, not of members").isLessThan(10);
  }

  @Test
  void sequence_ofAShardThatChanges_tellsItAfterReading() throws Exception {
    Shell.run(directory, "echo one > a; echo two > b; tar -cf t.tar a b");
    try (ShardStore store = store(new IndexForm(true, false), "t.tar");
        SourceSequence sequence = store.sequence(0, ByteBuffer.allocateDirect(1 << 20), () -> {})) {
      sequence.next();
      try (SourceFile file = sequence.open()) {
        file.status();
        Shell.run(directory, "touch -d 2001-01-01 t.tar");

        file.read(0, ByteBuffer.allocateDirect(9));
        assertThatThrownBy(file::status).hasMessageContaining("changed since it was indexed");
      }
    }
  }

  @Test
  void missingNames_areErrorsOfPosix() throws Exception {
    Shell.run(directory, "echo one > f; mkdir d; ln -s f l; tar -cf t.tar f d l");
    try (ShardStore store = store(new IndexForm(true, false), "t.tar")) {
      assertThatThrownBy(() -> store.status(FileName.of("x"))).hasMessage("ENOENT: x");
      assertThatThrownBy(() -> store.list(FileName.of("f"), names -> true))
          .hasMessage("ENOTDIR: f");
      assertThatThrownBy(() -> store.open(FileName.of("d"))).hasMessage("EISDIR: d");
      assertThatThrownBy(() -> store.readSymbolicLink(FileName.of("f"))).hasMessage("EINVAL: f");
      assertThat(store.readSymbolicLink(FileName.of("l"))).isEqualTo(FileName.of("f"));
      assertThat(store.extendedAttributes(FileName.of("f"))).isEmpty();
    }
  }
}
