package io.pmfs.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.LIST;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class PackPlanTest {
  @TempDir Path temporary;
  private PackFixture pack;

  @BeforeEach
  void makeFixture() {
    pack = new PackFixture(temporary.resolve("pack"));
  }

  private List<String> allNames() throws Exception {
    return pack.plannedNames().stream().flatMap(List::stream).toList();
  }

  @Test
  void name_ofFilesAndDirectories_keepsTheFilesOfADirectoryTogether() throws Exception {
    pack.source.directory("a");
    pack.source.directory("a/b");
    pack.source.directory("a-b");
    pack.source.directory("empty");
    for (String file : List.of("z", "a/z", "a/b/x", "a-b/x", "a/a")) {
      pack.source.file(file, 1, 1);
    }
    assertThat(allNames()).containsExactly("z", "a/a", "a/z", "a/b/x", "a-b/x", "empty");
  }

  @Test
  void name_ofSamples_keepsThemAdjacent() throws Exception {
    for (String file : List.of("a", "a-1.jpg", "a.jpg", "a-1.cls", "a.seg.png", ".x.jpg", ".x")) {
      pack.source.file(file, 1, 1);
    }
    assertThat(allNames())
        .containsExactly(".x", ".x.jpg", "a", "a.jpg", "a.seg.png", "a-1.cls", "a-1.jpg");
  }

  @Test
  void order_ofTheListing_doesNotMatter() throws Exception {
    List<String> names = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      names.add("f" + i);
    }
    PackFixture other = new PackFixture(temporary.resolve("other"));
    names.forEach(n -> pack.source.file(n, 1, n.length()));
    java.util.Collections.shuffle(names, new Random(1));
    names.forEach(n -> other.source.file(n, 1, n.length()));
    for (String order : List.of("name", "size", "shuffle:7")) {
      pack.order = PackOrder.parse(order);
      other.order = pack.order;
      assertThat(other.plannedNames()).as(order).isEqualTo(pack.plannedNames());
    }
  }

  @Test
  void shuffle_ofASeed_isTheSameOnEveryMachine() throws Exception {
    for (int i = 0; i < 8; i++) {
      pack.source.file(i + ".jpg", 1, 1);
      pack.source.file(i + ".cls", 1, 1);
    }
    pack.order = PackOrder.parse("shuffle:42");
    // Written down once: packs of today and of next year are to agree.
    assertThat(allNames().stream().filter(n -> n.endsWith(".cls")).toList())
        .containsExactly("5.cls", "3.cls", "0.cls", "2.cls", "4.cls", "7.cls", "1.cls", "6.cls");
    List<String> first = allNames();
    pack.order = PackOrder.parse("shuffle:43");
    assertThat(allNames()).isNotEqualTo(first).containsExactlyInAnyOrderElementsOf(first);
  }

  @Test
  void shuffle_ofSamples_keepsThemAdjacentInOneShard() throws Exception {
    pack.shardBytes = 8 << 10;
    for (int i = 0; i < 50; i++) {
      pack.source.directory("d" + i);
      for (String end : List.of("jpg", "cls", "seg.png")) {
        pack.source.file("d" + i + "/a." + end, 1, 700);
        pack.source.file("d" + i + "/a-b." + end, 1, 700);
      }
    }
    pack.order = PackOrder.parse("shuffle:1");
    List<List<String>> shards = pack.plannedNames();
    assertThat(shards).hasSizeGreaterThan(20);
    for (List<String> shard : shards) {
      assertThat(shard.size() % 3).isZero();
      for (int i = 0; i < shard.size(); i += 3) {
        String key = shard.get(i).substring(0, shard.get(i).indexOf('.'));
        assertThat(shard.subList(i, i + 3))
            .containsExactly(key + ".cls", key + ".jpg", key + ".seg.png");
      }
    }
  }

  @Test
  void size_ofFiles_putsTheSmallestFirst() throws Exception {
    pack.source.file("a.x", 1, 30);
    pack.source.file("a.y", 1, 10);
    pack.source.file("b", 1, 20);
    pack.source.file("c", 1, 20);
    pack.order = PackOrder.parse("size");
    assertThat(allNames()).containsExactly("a.y", "b", "c", "a.x");
  }

  /** One has names in two others, which have nothing in common. */
  @ParameterizedTest
  @ValueSource(strings = {"name", "shuffle:3"})
  void hardLinks_fromOneSampleToTwoOthers_keepAllThreeTogether(String order) throws Exception {
    pack.shardBytes = 4 << 10;
    for (String directory : List.of("a", "b", "c")) {
      pack.source.directory(directory);
      pack.source.file(directory + "/s.cls", 1, 1000);
      pack.source.file(directory + "/s.jpg", 1, 1000);
    }
    pack.source.hardLink("c/s.one", "a/s.jpg");
    pack.source.hardLink("c/s.two", "b/s.jpg");
    pack.order = PackOrder.parse(order);
    assertThat(pack.plannedNames())
        .singleElement(LIST)
        .containsExactlyInAnyOrder(
            "a/s.cls", "a/s.jpg", "b/s.cls", "b/s.jpg", "c/s.cls", "c/s.jpg", "c/s.one", "c/s.two");
  }

  @ParameterizedTest
  @ValueSource(strings = {"name", "size", "shuffle:3"})
  void hardLinks_fromEverywhere_areInOneShardOnce(String order) throws Exception {
    pack.shardBytes = 16 << 10;
    for (String directory : List.of("a", "b", "c")) {
      pack.source.directory(directory);
      for (int i = 0; i < 20; i++) {
        pack.source.file(directory + "/" + i, 1, 1000 + i);
      }
    }
    pack.source.file("a/s.jpg", 1, 1000);
    pack.source.file("a/s.cls", 1, 1000);
    pack.source.hardLink("c/z", "a/s.jpg");
    pack.source.hardLink("b/z", "a/s.jpg");
    pack.order = PackOrder.parse(order);
    List<List<String>> shards = pack.plannedNames();
    assertThat(shards).hasSizeGreaterThan(3);
    assertThat(shards.stream().filter(s -> s.contains("c/z")))
        .hasSize(1)
        .allSatisfy(s -> assertThat(s).containsSubsequence("a/s.jpg", "b/z", "c/z"));
    if (!order.equals("size")) {
      assertThat(shards.stream().filter(s -> s.contains("c/z")).findFirst().orElseThrow())
          .containsSubsequence("a/s.cls", "a/s.jpg");
    }
  }

  @Test
  void hardLinks_inAChain_formOneUnit() throws Exception {
    pack.shardBytes = 1;
    pack.source.file("a.1", 1, 10);
    pack.source.file("b.1", 1, 10);
    pack.source.file("c.1", 1, 10);
    pack.source.hardLink("b.2", "a.1");
    pack.source.hardLink("c.2", "b.1");
    pack.source.file("d", 1, 10);
    assertThat(pack.plannedNames())
        .containsExactly(List.of("a.1", "b.1", "b.2", "c.1", "c.2"), List.of("d"));
  }

  @Test
  void cut_atEachSize_keepsWithinItOrToOneUnit() throws Exception {
    pack.source.directory("d");
    pack.source.directory("d/e");
    for (int i = 0; i < 6; i++) {
      pack.source.file("d/" + i, 1, i * 300L);
      pack.source.file("d/e/" + i, 1, i * 100L);
    }
    pack.source.file("large", 1, 5000);
    int last = Integer.MAX_VALUE;
    for (long size = 1; size < 40_000; size += 256) {
      pack.shardBytes = size;
      List<PlannedShard> shards = pack.plan();
      for (PlannedShard shard : shards) {
        assertThat(shard.tarBytes() <= size || shard.files().size() == 1)
            .as("%s of %d in %d", PackFixture.names(shard), shard.tarBytes(), size)
            .isTrue();
      }
      assertThat(shards.size()).isLessThanOrEqualTo(last);
      last = shards.size();
    }
    assertThat(last).isEqualTo(1);
  }

  @Test
  void source_thatIsEmpty_isOneShard() throws Exception {
    assertThat(pack.plan()).hasSize(1);
    assertThat(pack.plan().get(0).name()).isEqualTo("shard-000000.tar");
  }

  @Test
  void hash_changesWithAnyAttributeAndName() throws Exception {
    pack.source.file("a", 1, 10);
    String before = pack.plan().get(0).hash();
    assertThat(pack.plan().get(0).hash()).isEqualTo(before);
    pack.source.setModified("a", pack.source.now().plusNanos(1));
    String touched = pack.plan().get(0).hash();
    assertThat(touched).isNotEqualTo(before);
    pack.source.hardLink("b", "a");
    assertThat(pack.plan().get(0).hash()).isNotEqualTo(touched);
  }

  @Test
  void fingerprint_ofAttributes_changesWithEachThatAShardHolds() {
    Instant time = Instant.ofEpochSecond(1_700_000_000, 5);
    List<Attributes> all =
        List.of(
            attributes(0100644, 1, 2, 3, 4, time),
            attributes(0100755, 1, 2, 3, 4, time),
            attributes(0100644, 9, 2, 3, 4, time),
            attributes(0100644, 1, 9, 3, 4, time),
            attributes(0100644, 1, 2, 9, 4, time),
            attributes(0100644, 1, 2, 3, 9, time),
            attributes(0100644, 1, 2, 3, 4, time.plusSeconds(1)),
            attributes(0100644, 1, 2, 3, 4, time.plusNanos(1)));
    assertThat(all.stream().map(Fingerprint::of)).doesNotHaveDuplicates();
  }

  private static Attributes attributes(
      int mode, int uid, int gid, long device, long size, Instant modified) {
    return new Attributes(
        mode, 1, uid, gid, device, size, 8, Instant.EPOCH, modified, Instant.EPOCH);
  }

  @Test
  void walk_ofEveryType_leavesOutSocketsAlone() throws Exception {
    pack.source.special("fifo", FileType.FIFO);
    pack.source.special("socket", FileType.SOCKET);
    pack.source.symbolicLink("link", "nowhere");
    pack.source.file(FileName.ofLatin1("\u00ff\u00fe"), 1, 1);
    SourceTree tree = new SourceWalk(pack.source, 2, new PackProgress()).run();
    assertThat(tree.files().stream().map(f -> f.path().toLatin1()))
        .containsExactlyInAnyOrder("fifo", "link", "\u00ff\u00fe");
    assertThat(tree.sockets()).containsExactly("socket");
  }
}
