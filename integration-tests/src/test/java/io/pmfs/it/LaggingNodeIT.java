package io.pmfs.it;

import io.pmfs.it.LaggingBed.Way;
import io.pmfs.posix.OnRequest;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * One node of several sees some files for a while as they were before they changed, as a client of
 * a network file system may. Every byte is compared, on all nodes: the others read each file as
 * their own source shows it; that node reads one version or the other; nobody ever reads something
 * in between, nor keeps it.
 */
@Tag("alone") // says how long the slowest read took
final class LaggingNodeIT {
  private static final int FILES = 200;

  @BeforeEach
  void require() {
    Nodes.require();
    Machine.requireFuse();
  }

  @Test
  @OnRequest("cases")
  void twoNodes_oneLags_theOtherReadsAndKeepsWhatItsOwnSourceShows() {
    check(Way.COLD, 2, 60);
  }

  private static void check(Way way, int nodes, int files) {
    try (LaggingBed bed = new LaggingBed(nodes, Lag.EVERYTHING, LaggingBed.mixed(files))) {
      bed.begin(way);
      bed.assertEachReadsItsOwnSource();
      bed.assertNothingIsLeft(way);
    }
  }

  static Stream<Arguments> ways() {
    return Stream.of(Way.values())
        .flatMap(way -> Stream.of(2, 3, 4).map(nodes -> Arguments.of(way, nodes)));
  }

  @ParameterizedTest(name = "{0} on {1} nodes")
  @MethodSource("ways")
  @OnRequest("cluster")
  void oneNodeLags_othersReadAndKeepWhatTheirOwnSourceShows(Way way, int nodes) {
    check(way, nodes, FILES);
  }

  /** Two of them can agree on a version that is gone: decision 55. */
  @Test
  @OnRequest("cluster")
  void severalNodesLag_nobodyReadsOrKeepsAMixture() {
    try (LaggingBed bed = new LaggingBed(3, Lag.EVERYTHING, LaggingBed.mixed(FILES))) {
      bed.change(bed.node(0), bed.node(1));
      bed.mount(Way.COLD);
      bed.assertEachReadsOneVersion();
      bed.assertNothingIsLeft(Way.COLD);
    }
  }

  /** What a client of NFS shows that has attributes in its cache, but not the content. */
  @ParameterizedTest
  @EnumSource(names = {"ATTRIBUTES", "ATTRIBUTES_UNTIL_READ"})
  @OnRequest("cluster")
  void attributesOfOneNodeLag_othersReadAndKeepWhatTheirOwnSourceShows(Lag lag) {
    try (LaggingBed bed = new LaggingBed(3, lag, LaggingBed.mixed(FILES))) {
      bed.begin(Way.COLD);
      bed.assertEachReadsItsOwnSource();
      bed.assertNothingIsLeft(Way.COLD);
    }
  }

  /** Until they mount again the nodes may read either, or have errors; they keep no mixture. */
  @ParameterizedTest(name = "{0} nodes")
  @ValueSource(ints = {2, 3, 4})
  @OnRequest("cluster")
  void filesChangeWhileTheyAreRead_andOneNodeLags_nothingWrongIsKept(int nodes) {
    try (LaggingBed bed = new LaggingBed(nodes, Lag.EVERYTHING, LaggingBed.mixed(FILES))) {
      bed.mount(Way.COLD);
      List<Sight> seen = bed.bed().nodes().stream().map(bed::beginToLook).toList();
      seen.forEach(sight -> sight.awaitMore(FILES / 4));
      bed.change(bed.node(0));
      seen.forEach(sight -> sight.awaitMore(FILES));
      bed.catchUp();
      seen.forEach(sight -> sight.awaitMore(FILES));
      seen.forEach(Sight::end);
      bed.mountAgain(Way.COLD);
      bed.assertNothingIsLeft(Way.COLD);
    }
  }

  /** What happens to another node while one lags. */
  enum Fault {
    KILLED(LaggingBed.STALL),
    CUT(LaggingBed.STALL),
    SLOWED(LaggingBed.STALL),
    SLOW_SOURCE(LaggingBed.STALL),
    /** docs/cluster.md: "alone does not reach the source". */
    HANGING_SOURCE(Duration.ofSeconds(30)),
    /** Nothing but that no node lags any more. */
    NONE(LaggingBed.STALL);

    private final Duration longest;

    Fault(Duration longest) {
      this.longest = longest;
    }
  }

  @ParameterizedTest
  @EnumSource(Fault.class)
  @OnRequest("cluster")
  void oneNodeLagsAndAnotherFails_theRestReadWhatTheirOwnSourceShows(Fault fault) {
    int files = 2 * FILES;
    try (LaggingBed bed = new LaggingBed(4, Lag.EVERYTHING, LaggingBed.small(files))) {
      // So that most files are still to be read when it happens.
      bed.limit(2_000_000);
      bed.begin(Way.COLD);
      List<Sight> seen = Stream.of(0, 2, 3).map(index -> bed.beginToLook(bed.node(index))).toList();
      seen.forEach(sight -> sight.awaitMore(files / 10));
      begin(fault, bed);
      seen.forEach(sight -> sight.awaitMore(2 * files));
      end(fault, bed);
      bed.limit(0);
      seen.forEach(sight -> sight.awaitMore(files));
      seen.forEach(Sight::end);
      bed.assertItsOwnSource(seen, fault.longest);
      bed.assertNothingIsLeft(Way.COLD);
    }
  }

  private static void begin(Fault fault, LaggingBed bed) {
    Node node = bed.node(1);
    switch (fault) {
      case KILLED -> node.kill9();
      case CUT -> node.cut();
      case SLOWED -> node.throttle(1_000_000);
      case SLOW_SOURCE -> bed.view(node).limit(200_000);
      case HANGING_SOURCE -> bed.view(node).hang(SourceView.Operation.READ, "*");
      case NONE -> bed.catchUp();
    }
  }

  private static void end(Fault fault, LaggingBed bed) {
    Node node = bed.node(1);
    switch (fault) {
      case KILLED -> bed.bed().mount(node);
      case CUT -> node.mend();
      case SLOWED -> node.unthrottle();
      case HANGING_SOURCE -> bed.view(node).mend();
      case SLOW_SOURCE, NONE -> {}
    }
    bed.bed().awaitMembers(4);
  }
}
