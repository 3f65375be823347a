package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Four nodes of which one fails under readers on all of them that compare every byte: no read fails
 * while the source lives, and none waits without end. Files are copied by their owners only, so
 * that the others have to ask.
 */
@OnRequest("cluster")
@Tag("alone") // says how long the slowest read took
final class ClusterFaultIT {
  private static final int READERS_PER_NODE = 2;

  /** No fault of another node may keep a reader waiting for as long. */
  private static final Duration STALL = Duration.ofSeconds(5);

  private static final List<String> OWNERS_ONLY = List.of("--remote-copies", "never");

  /** The connections of a process that is killed are closed, so that nobody waits for it. */
  private static final List<String> PATIENT_OWNERS =
      Stream.concat(OWNERS_ONLY.stream(), ClusterBed.PATIENT.stream()).toList();

  private ClusterBed bed;
  private final List<Readers> readers = new ArrayList<>();
  private String test = "";

  @BeforeEach
  void make(TestInfo info) {
    Nodes.require();
    Machine.requireFuse();
    test = info.getTestMethod().orElseThrow().getName();
    bed = new ClusterBed(4, Dataset.sizes(120, 70_000));
  }

  @AfterEach
  void remove() {
    readers.forEach(Readers::close);
    if (bed != null) {
      bed.close();
    }
  }

  /** Begins to read on some nodes, and goes on until the test ends or they are told to stop. */
  private Readers readOn(List<Node> nodes) {
    List<Path> mountpoints = nodes.stream().map(node -> node.mounted().mountpoint()).toList();
    Readers started =
        new Readers(
            bed.dataset(),
            mountpoints,
            READERS_PER_NODE * nodes.size(),
            bed.dataset().items().subList(0, 10));
    readers.add(started);
    return started;
  }

  private List<Node> others() {
    return bed.nodes().subList(1, 4);
  }

  private Node victim() {
    return bed.node(0);
  }

  private void readMore() {
    readers.forEach(each -> each.awaitMore(100));
  }

  /** Says how long the slowest read took, which machine and load decide. */
  private void assertAllWereRead() {
    long reads = 0;
    Duration longest = Duration.ZERO;
    for (Readers each : readers) {
      each.close();
      each.assertNoFailures();
      reads += each.reads();
      longest = longest.compareTo(each.longest()) < 0 ? each.longest() : longest;
    }
    System.out.printf("%s: %d reads, longest %d ms%n", test, reads, longest.toMillis());
    assertThat(longest).isLessThan(STALL);
    readers.clear();
    assertThat(bed.sum("reads.errors")).isZero();
    bed.epoch();
  }

  /** A node that was suspected is asked again after a while, and what was lost is copied again. */
  private void awaitEpochWithoutTheSource() {
    Await.until(
        "an epoch without the source",
        ClusterBed.PATIENCE,
        () -> bed.askedBy(bed::epoch).bytes() == 0);
  }

  @Test
  void daemon_killed_isReplacedAndAMemberAgain() {
    bed.mountAll(node -> PATIENT_OWNERS);
    readOn(bed.nodes());
    readMore();
    for (int kill = 0; kill < 2; kill++) {
      long killed = victim().mounted().daemon();
      victim().mounted().killDaemon();
      readMore();
      victim().mounted().awaitSuccessor(killed);
      bed.awaitMembers(4);
      readMore();
    }
    assertAllWereRead();
    awaitEpochWithoutTheSource();
  }

  @Test
  void node_killed_isMissedByNobodyAndItsCopiesCountAgain() {
    bed.mountAll(node -> PATIENT_OWNERS);
    bed.epoch();
    readOn(others());
    readMore();
    victim().kill9();
    bed.awaitMembers(3);
    readMore();
    bed.mount(victim(), PATIENT_OWNERS.toArray(String[]::new));
    bed.awaitMembers(4);
    readMore();
    assertAllWereRead();
    awaitEpochWithoutTheSource();
    assertThat(bytesFromSource()).as("its copies are there").isZero();

    readOn(others());
    victim().kill9();
    Faults.delete(victim().pmfs().tier());
    victim().pmfs().directory("tier");
    bed.mount(victim(), PATIENT_OWNERS.toArray(String[]::new));
    bed.awaitMembers(4);
    readMore();
    assertAllWereRead();
    awaitEpochWithoutTheSource();
  }

  /** Its kernel takes connections and requests all the while; nobody answers. */
  @Test
  void daemon_stopped_isGoneRoundAndAMemberAgain() throws InterruptedException {
    bed.mountAll(node -> OWNERS_ONLY);
    bed.epoch();
    readOn(others());
    readMore();
    String daemon = Long.toString(victim().mounted().daemon());
    Command.run("kill", "-STOP", daemon).expect(0);
    try {
      readMore();
      Thread.sleep(8_000);
      readMore();
    } finally {
      Command.run("kill", "-CONT", daemon).expect(0);
    }
    bed.awaitMembers(4);
    readMore();
    assertAllWereRead();
  }

  /** It answers in time, and with what nobody may believe. */
  @ParameterizedTest
  @EnumSource(
      value = HostileMember.Mode.class,
      names = {"WRONG_LENGTH", "WRONG_BYTES", "HANGING"})
  void member_thatSpoilsItsAnswers_costsNoReadAndIsAskedAgainLater(HostileMember.Mode mode)
      throws Exception {
    test += " " + mode;
    for (Node node : others()) {
      bed.mount(node, OWNERS_ONLY.toArray(String[]::new));
    }
    bed.awaitMembers(3);
    try (HostileProcess member = new HostileProcess(bed, victim(), others().get(0))) {
      bed.awaitMembers(4);
      readOn(others());
      readMore();
      assertThat(member.become(mode)).isZero();
      readMore();
      long deadline = System.nanoTime() + Duration.ofSeconds(8).toNanos();
      while (System.nanoTime() < deadline) {
        readMore();
      }
      assertThat(member.become(HostileMember.Mode.HONEST)).as("spoiled answers").isPositive();
      long given = givenBy("hostile");
      Await.until(
          "it gives something again", ClusterBed.PATIENCE, () -> givenBy("hostile") > given);
      readMore();
      assertAllWereRead();
    }
  }

  /** What the others got from a member. */
  private long givenBy(String name) {
    long sum = 0;
    for (Node node : others()) {
      Status status = node.mounted().status();
      for (int i = 0; i < status.size("cluster.members"); i++) {
        if (status.text("cluster.members." + i + ".node").equals(name)) {
          sum += status.number("cluster.members." + i + ".bytes");
        }
      }
    }
    return sum;
  }

  @Test
  void link_cutAndMended() {
    bed.mountAll(node -> OWNERS_ONLY);
    readOn(bed.nodes());
    readMore();
    victim().cut();
    ClusterBed.awaitMembers(victim(), 1);
    others().forEach(node -> ClusterBed.awaitMembers(node, 3));
    readMore();
    victim().mend();
    bed.awaitMembers(4);
    readMore();
    assertAllWereRead();
  }

  /** A node that was alone copied everything that it read. */
  @Test
  void copies_ofALonelyTime_areDroppedWhenTheOthersAreBack() {
    bed.mountAll(node -> OWNERS_ONLY);
    victim().cut();
    ClusterBed.awaitMembers(victim(), 1);
    bed.readAll(victim());
    victim().mounted().awaitStagingIdle();
    long all = bed.dataset().items().size();
    assertThat(copies(victim())).isGreaterThanOrEqualTo(all);
    victim().mend();
    bed.awaitMembers(4);

    Await.until(
        "each owner has its files",
        ClusterBed.PATIENCE,
        () -> copies(victim()) < all && bed.sum("tiers.0.copies") <= all + 1);

    assertThat(others()).allMatch(node -> copies(node) > 0);
    assertThat(bed.askedBy(bed::epoch).bytes()).isZero();
  }

  private static long copies(Node node) {
    return node.mounted().status().number("tiers.0.copies");
  }

  @Test
  void link_throttled() {
    Nodes.requireThrottle();
    bed.mountAll(node -> OWNERS_ONLY);
    readOn(bed.nodes());
    readMore();
    victim().throttle(1_000_000);
    readMore();
    readMore();
    victim().unthrottle();
    bed.awaitMembers(4);
    readMore();
    assertAllWereRead();
  }

  @Test
  void halves_ofAPartition_goOnAndMeetAgain() {
    bed.mountAll(node -> OWNERS_ONLY);
    readOn(bed.nodes());
    readMore();
    bed.network().split(bed.nodes().subList(0, 2));
    bed.awaitMembers(2);
    readMore();
    bed.network().heal();
    bed.awaitMembers(4);
    readMore();
    assertAllWereRead();
    awaitEpochWithoutTheSource();
  }

  @Test
  void disk_ofAnOwnerFull_itAsksTheSourceAndTheOthersDoNot() {
    Path small = bed.scratch().tmpfs("small", "mode=0700,size=" + bed.bytes() / 10);
    bed.mountAll(
        node -> {
          List<String> options = new ArrayList<>(PATIENT_OWNERS);
          if (node == victim()) {
            options.addAll(List.of("--tier", "ssd:" + small));
          }
          return options;
        });
    readOn(bed.nodes());
    readMore();
    assertAllWereRead();
    bed.awaitStagingIdle();
    long before = bytesFromSource();
    long asked = bed.askedBy(bed::epoch).bytes();
    assertThat(asked).isPositive().isEqualTo(bytesFromSource() - before);
  }

  private long bytesFromSource() {
    return victim().mounted().status().number("sourceOperations.bytes");
  }

  @Test
  void copy_damagedOnItsOwnersDisk_isNotWhatOthersGet() {
    bed.mountAll(node -> OWNERS_ONLY);
    bed.epoch();
    bed.awaitStagingIdle();
    Dataset.Item item = bed.dataset().items().get(7);
    Node owner = bed.nodes().stream().filter(node -> hasCopy(node, item)).findFirst().orElseThrow();
    Dataset.Copy copy = Dataset.copyOf(item, owner.pmfs().tier());
    Faults.flipByte(copy.file(), copy.offset() + item.size() / 2);

    Machine.dropCaches();
    for (Node node : bed.nodes()) {
      if (node != owner) {
        long misses = node.mounted().status().number("cluster.missesOfPeers");
        Dataset.assertEqualBelow(node.mounted().mountpoint(), item);
        assertThat(node.mounted().status().number("cluster.missesOfPeers")).isGreaterThan(misses);
      }
    }
  }

  private static boolean hasCopy(Node node, Dataset.Item item) {
    try {
      Dataset.copyOf(item, node.pmfs().tier());
      return true;
    } catch (AssertionError e) {
      return false;
    }
  }
}
