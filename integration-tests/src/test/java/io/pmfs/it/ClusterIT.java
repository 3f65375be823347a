package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.it.ClusterBed.Asked;
import io.pmfs.posix.OnRequest;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What four nodes that hold a dataset together ask its source for: each byte, and that once. */
final class ClusterIT {
  private static final Asked NOTHING = Asked.nothing();

  /** Small files, an empty one, and some of several blocks: 10 MB in all. */
  private static final int[] SIZES =
      IntStream.concat(
              IntStream.rangeClosed(0, 56).map(i -> i * 2_500),
              IntStream.of(100_000, 1 << 20, 5_000_000))
          .toArray();

  /** Files that there is something to copy of: without the empty one, but the bed's own. */
  private static final int COPIES = SIZES.length;

  /** So many that each node owns about a quarter of their bytes. */
  private static final int[] MANY = Dataset.sizes(240, 40_000);

  @BeforeEach
  void require() {
    Nodes.require();
    Machine.requireFuse();
  }

  /** Mounts on all nodes; none gives up waiting for another. */
  private static void mountAll(ClusterBed bed, String... more) {
    mountAll(bed, node -> List.of(more));
  }

  private static void mountAll(ClusterBed bed, Function<Node, List<String>> more) {
    bed.mountAll(
        node -> Stream.concat(ClusterBed.PATIENT.stream(), more.apply(node).stream()).toList());
  }

  @Test
  void epoch_ofAllNodes_asksTheSourceForEachByteAndDirectoryOnceAndThenForNothing() {
    try (ClusterBed bed = new ClusterBed(4, SIZES)) {
      mountAll(bed);
      Asked first = bed.askedBy(bed::epoch);
      assertThat(first.bytes()).isEqualTo(bed.bytes());
      assertThat(first.lists()).isEqualTo(bed.directories());
      assertThat(bed.asked().lists())
          .as("besides, each mount looks at the first names of the root")
          .isEqualTo(bed.directories() + 4);

      long reads = bed.sum("reads.requests");
      assertThat(bed.askedBy(bed::epoch)).isEqualTo(NOTHING);
      assertThat(bed.sum("reads.requests")).as("the kernel asked").isGreaterThan(reads);
      // There was room for all of it on each.
      assertThat(bed.sum("tiers.0.copies")).isEqualTo(4L * COPIES);
      // Three quarters of what each node read came from peers, and were kept as guests.
      assertThat(bed.nodes())
          .extracting(node -> node.mounted().status().text("engagement.state"))
          .containsOnly("engaged");
    }
  }

  /** By what arrives at the source, and not by what the daemons count. */
  @Test
  @OnRequest("cluster")
  void firstEpoch_opensListsAndLooksAtEachNameOnceForAllNodes() {
    try (ClusterBed bed = new ClusterBed(4, SIZES)) {
      mountAll(bed);
      List<Long> daemons = bed.nodes().stream().map(node -> node.mounted().daemon()).toList();
      SourceCalls calls = new SourceCalls(bed.scratch(), bed.dataset().root(), daemons);
      try (calls) {
        bed.epoch();
        bed.awaitStagingIdle();
      }
      List<String> directories = bed.names("-type", "d");
      List<String> files = bed.names("-type", "f");
      assertThat(calls.lists).isEqualTo(each(directories, 1));
      assertThat(calls.opens).isEqualTo(each(files, 1));
      assertThat(calls.links.keySet()).isEqualTo(Set.copyOf(bed.names("-type", "l")));
      // A directory once more when it was listed, whether it changed meanwhile; the root is no
      // name.
      Map<String, Integer> stats = each(bed.names("-mindepth", "1"), 1);
      directories.forEach(directory -> stats.merge(directory, 1, Integer::sum));
      // A file also by the other nodes, if the node that described it has read it, too.
      assertThat(calls.stats.keySet()).isEqualTo(stats.keySet());
      stats.forEach(
          (name, least) ->
              assertThat(calls.stats.get(name))
                  .as(name)
                  .isBetween(least, files.contains(name) ? least + 3 : least));
      // Before the first byte and after each block.
      assertThat(calls.openStats.keySet()).isEqualTo(Set.copyOf(files));
      Set<String> ofBlocks = Set.copyOf(bed.names("-type", "f", "-size", "+1024k"));
      calls.openStats.forEach(
          (name, count) ->
              assertThat(count).as(name).isBetween(1, ofBlocks.contains(name) ? 9 : 2));
    }
  }

  /** Then each node compares each name with the source itself, once; contents are as before. */
  @Test
  @OnRequest("cluster")
  void firstEpoch_ofMountsThatOthersEnter_looksAtEachNameOnceOnEachNode() {
    int nodes = 4;
    try (ClusterBed bed = new ClusterBed(nodes, SIZES)) {
      mountAll(bed, "--allow-other");
      Asked first = bed.askedBy(bed::epoch);
      long names = bed.names("-mindepth", "1").size();
      long files = bed.names("-type", "f").size();
      assertThat(first.bytes()).isEqualTo(bed.bytes());
      assertThat(first.count("opens")).isEqualTo(files);
      // No peer is believed that a directory is empty.
      assertThat(first.lists()).isBetween(bed.directories(), bed.directories() + nodes - 1);
      // A directory once more on each node, when it was listed; a file before it was read and after
      // each of its blocks.
      assertThat(first.count("stats"))
          .isBetween(nodes * names, nodes * (names + bed.directories()) + 3 * files);
      assertThat(bed.askedBy(bed::epoch)).isEqualTo(NOTHING);
    }
  }

  private static Map<String, Integer> each(List<String> names, int count) {
    Map<String, Integer> counts = new TreeMap<>();
    names.forEach(name -> counts.put(name, count));
    return counts;
  }

  @Test
  @OnRequest("cluster")
  void epochs_withTiersOfTwoFifths_askTheSourceForEachByteOnce() {
    try (ClusterBed bed = new ClusterBed(4, MANY)) {
      long capacity = bed.bytes() * 2 / 5;
      mountAll(bed, node -> List.of("--tier", "ssd:" + node.pmfs().tier() + ":" + capacity));
      assertThat(bed.askedBy(bed::epoch).bytes()).isEqualTo(bed.bytes());
      assertThat(bed.sum("tiers.0.copies")).as("not all fits each").isLessThan(2L * MANY.length);
      for (int epoch = 2; epoch <= 3; epoch++) {
        assertThat(bed.askedBy(bed::epoch)).as("epoch %s", epoch).isEqualTo(NOTHING);
      }
    }
  }

  @ParameterizedTest
  @OnRequest("cluster")
  @CsvSource({"never, 1", "keep, 4"})
  void remoteCopies_areMadeAsAskedFor(String when, int copiesOfEach) {
    try (ClusterBed bed = new ClusterBed(4, SIZES)) {
      mountAll(bed, "--remote-copies", when);
      assertThat(bed.askedBy(bed::epoch).bytes()).isEqualTo(bed.bytes());
      assertThat(bed.sum("tiers.0.copies")).isEqualTo((long) copiesOfEach * COPIES);
      assertThat(bed.askedBy(bed::epoch)).isEqualTo(NOTHING);
    }
  }

  @Test
  @OnRequest("cluster")
  void replicas_outliveANode() {
    try (ClusterBed bed = new ClusterBed(4, SIZES)) {
      mountAll(bed, "--remote-copies", "never", "--replicas", "2");
      assertThat(bed.askedBy(bed::epoch).bytes()).isEqualTo(bed.bytes());
      assertThat(bed.sum("tiers.0.copies")).isEqualTo(2L * COPIES);

      bed.node(2).kill9();
      bed.awaitMembers(3);
      assertThat(bed.askedBy(bed::epoch).bytes()).isZero();
    }
  }

  @Test
  @OnRequest("cluster")
  void stage_onOneNode_isSharedByAll() {
    try (ClusterBed bed = new ClusterBed(4, SIZES)) {
      mountAll(bed, "--remote-copies", "never");
      int files = COPIES + 1;
      Asked staged =
          bed.askedBy(() -> assertThat(stage(bed, 1)).contains("; " + files + " files of "));
      assertThat(staged.bytes()).isEqualTo(bed.bytes());
      assertThat(bed.sum("tiers.0.copies")).isEqualTo(COPIES);
      assertThat(stage(bed, 3, "--check")).contains(files + " files in the tiers");

      String part = "part-001";
      assertThat(pmfs(bed, 2, "stage", "--check", "--replicate", "all", path(bed, 2, part)).exit())
          .isEqualTo(4);
      Asked replicated =
          bed.askedBy(
              () -> pmfs(bed, 0, "stage", "--replicate", "all", path(bed, 0, part)).expect(0));
      assertThat(replicated.bytes()).as("they came from peers").isZero();
      assertThat(bed.sum("tiers.0.copies")).isEqualTo(COPIES + 3 * 10);
      pmfs(bed, 2, "stage", "--check", "--replicate", "all", path(bed, 2, part)).expect(0);
      assertThat(bed.askedBy(bed::epoch).bytes()).isZero();
    }
  }

  private static String stage(ClusterBed bed, int index, String... options) {
    String[] arguments = new String[options.length + 2];
    arguments[0] = "stage";
    System.arraycopy(options, 0, arguments, 1, options.length);
    arguments[options.length + 1] = bed.node(index).mounted().mountpoint().toString();
    return pmfs(bed, index, arguments).expect(0).out();
  }

  private static String path(ClusterBed bed, int index, String relative) {
    return bed.node(index).mounted().path(relative);
  }

  private static Command pmfs(ClusterBed bed, int index, String... arguments) {
    return bed.node(index).pmfs().run(arguments);
  }

  @Test
  @OnRequest("cluster")
  void clustersOnTheSameNodes_doNotMeet() {
    try (ClusterBed bed = new ClusterBed(2, SIZES)) {
      Path other = bed.scratch().directory("other");
      try (ClusterBed anotherName = bed.beside("job2", bed.dataset());
          ClusterBed anotherDataset = bed.beside("job", Dataset.create(other, MANY))) {
        List<ClusterBed> beds = List.of(bed, anotherName, anotherDataset);
        beds.forEach(each -> each.mountAll(node -> ClusterBed.PATIENT));
        List<Asked> before = beds.stream().map(ClusterBed::asked).toList();
        beds.parallelStream().forEach(ClusterBed::epoch);
        for (int i = 0; i < beds.size(); i++) {
          ClusterBed each = beds.get(i);
          each.awaitStagingIdle();
          assertThat(each.asked().minus(before.get(i)).bytes()).isEqualTo(each.bytes());
          each.awaitMembers(2);
        }
      }
    }
  }

  @Test
  @OnRequest("cluster")
  void directory_ofACluster_andALateNode() {
    try (ClusterBed bed = new ClusterBed(3, SIZES)) {
      Path directory = bed.scratch().directory("rendezvous");
      for (Node node : bed.nodes()) {
        List<String> options = new ArrayList<>(ClusterBed.PATIENT);
        options.addAll(List.of("--cluster", "job", "--cluster-dir", directory.toString()));
        options.addAll(List.of("--cluster-address", node.address()));
        options.addAll(List.of("--cluster-secret-file", bed.secret().toString()));
        node.mount(bed.dataset().root(), options.toArray(String[]::new));
        if (node == bed.node(1)) {
          bed.awaitMembers(2);
          assertThat(bed.askedBy(bed::epoch).bytes()).isEqualTo(bed.bytes());
        }
      }
      bed.awaitMembers(3);
      // What the late one owns now is read from those who did before.
      assertThat(bed.askedBy(bed::epoch).bytes()).isZero();
    }
  }

  @Test
  @OnRequest("cluster")
  void nodes_ofASlurmJob_meet() {
    try (ClusterBed bed = new ClusterBed(3, SIZES)) {
      for (Node node : bed.nodes()) {
        node.pmfs().environment("SLURM_JOB_NODELIST", "198.18.0.[1-3]");
        node.pmfs().environment("PMFS_CLUSTER_SECRET", "only these nodes know it");
        List<String> options = new ArrayList<>(ClusterBed.PATIENT);
        options.addAll(List.of("--cluster", "job"));
        node.mount(bed.dataset().root(), options.toArray(String[]::new));
      }
      bed.awaitMembers(3);
      assertThat(bed.askedBy(bed::epoch).bytes()).isEqualTo(bed.bytes());
    }
  }
}
