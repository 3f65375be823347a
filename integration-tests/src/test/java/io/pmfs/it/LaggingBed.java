package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;

/** A cluster whose nodes do not all see that some files of the source have changed. */
final class LaggingBed implements AutoCloseable {
  /** No read may take as long, as with other faults of a node: ClusterFaultIT. */
  static final Duration STALL = Duration.ofSeconds(5);

  /** Of so many files, one changes. */
  private static final int EACH = 10;

  private final ClusterBed bed;
  private final Versions versions;
  private final List<NodeView> views;
  private final Lag lag;
  private Set<Node> lagging = Set.of();
  private boolean hasCaughtUp;

  /** How the nodes are mounted, and what happens before they read. */
  enum Way {
    COLD,
    /** All have copies of the old versions, of an earlier session. */
    WARM,
    STAGED,
    ORDERED,
    TWO_REPLICAS("--replicas=2"),
    THREE_REPLICAS("--replicas=3"),
    NO_GUESTS("--remote-copies=never"),
    GUESTS_KEPT("--remote-copies=keep"),
    PASSTHROUGH("--read-mode=passthrough"),
    OPEN_TO_OTHERS("--allow-other"),
    /** Here the first node, which lags, has the names for all. */
    WRITABLE("--writable --allow-other"),
    /** Another than the first one lags. */
    WRITABLE_ELSEWHERE("--writable --allow-other");

    private final String options;

    Way() {
      this("");
    }

    Way(String options) {
      this.options = options;
    }

    private List<String> options() {
      return options.isEmpty() ? List.of() : List.of(options.split(" ", -1));
    }

    private boolean isWritable() {
      return options.contains("--writable");
    }
  }

  LaggingBed(int nodes, Lag lag, int... sizes) {
    this.lag = lag;
    bed = new ClusterBed(nodes, sizes);
    try {
      versions = new Versions(bed.dataset(), EACH);
      views = bed.viewByNode();
    } catch (RuntimeException | AssertionError e) {
      bed.close();
      throw e;
    }
  }

  static int[] small(int files) {
    return IntStream.range(0, files).map(i -> 2_000 + 300 * i).toArray();
  }

  /** Two that change have several blocks, and if there are many, one is read from all nodes. */
  static int[] mixed(int files) {
    int[] sizes = small(files);
    sizes[EACH / 2] = 2_500_000;
    sizes[2 * EACH + EACH / 2] = 2_500_000;
    if (files > 100) {
      sizes[6 * EACH + EACH / 2] = 18 << 20;
    }
    return sizes;
  }

  ClusterBed bed() {
    return bed;
  }

  Node node(int index) {
    return bed.node(index);
  }

  NodeView view(Node node) {
    return views.get(bed.nodes().indexOf(node));
  }

  /** Lets all nodes see the files as they are. */
  void catchUp() {
    hasCaughtUp = true;
    views.forEach(NodeView::catchUp);
  }

  /** Limits what each node reads of the source; 0 for no limit. */
  void limit(long bytesPerSecond) {
    views.forEach(view -> view.limit(bytesPerSecond));
  }

  void mount(Way way) {
    if (way.isWritable()) {
      // The first node must be there before the others.
      bed.nodes().forEach(node -> bed.mount(node, way.options().toArray(String[]::new)));
    } else {
      bed.mountAll(node -> way.options());
    }
  }

  /** Changes the files; some nodes do not see it. */
  void change(Node... unseen) {
    lagging = Set.of(unseen);
    lagging.forEach(node -> view(node).lag(lag, versions.changing()));
    versions.change();
  }

  /** Has files changed in the way, mounts, and does what that way is about. */
  void begin(Way way) {
    if (way == Way.WARM) {
      mount(way);
      lookOnEach();
      bed.awaitStagingIdle();
      bed.unmountAll();
    }
    change(bed.node(way == Way.WRITABLE_ELSEWHERE ? 1 : 0));
    mount(way);
    switch (way) {
      case STAGED -> stage();
      case ORDERED -> bed.onAll(this::startOrder);
      // Whose names all have lags.
      case WRITABLE -> lagging = Set.copyOf(bed.nodes());
      default -> {}
    }
  }

  /** Files that some nodes see otherwise may count as failed. */
  private void stage() {
    Node node = bed.node(1);
    Command staged = node.pmfs().run("stage", node.mounted().mountpoint().toString());
    System.out.println(staged);
    assertThat(staged.exit()).isIn(0, 4);
  }

  private void startOrder(Node node) {
    Path order = node.pmfs().directory("home").resolve("order");
    try {
      Files.write(order, versions.names());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    String mountpoint = node.mounted().mountpoint().toString();
    node.pmfs()
        .run("stage", "--order", order.toString(), "--window", "10M", "--background", mountpoint)
        .expect(0);
  }

  /** Begins to read on a node, on and on. */
  Sight beginToLook(Node node) {
    return Sight.begin(node, versions);
  }

  /** Reads all files on all nodes at the same time. */
  List<Sight> lookOnEach() {
    Map<Node, Sight> seen = new ConcurrentHashMap<>();
    bed.onAll(node -> seen.put(node, Sight.of(node, versions)));
    return seen.values().stream().toList();
  }

  /** From now on until the next session, any version will do for all. */
  void assertEachReadsOneVersion() {
    lagging = Set.copyOf(bed.nodes());
    assertEachReadsItsOwnSource();
  }

  void assertEachReadsItsOwnSource() {
    assertItsOwnSource(lookOnEach(), STALL);
  }

  /** That nodes that lag saw one version or the other, and the rest the new one. */
  void assertItsOwnSource(List<Sight> seen, Duration longest) {
    seen.forEach(System.out::println);
    for (Sight sight : seen) {
      boolean lags = lagging.contains(sight.node());
      sight.assertOnly(lags ? lag.shown() : Lag.NONE);
      if (!lags || !lag.isContradictory() || hasCaughtUp) {
        sight.assertNoneFailed();
      }
      assertThat(sight.longest()).as(sight.toString()).isLessThan(longest);
    }
  }

  /** Another session of all nodes, none of which lags any more. */
  void mountAgain(Way way) {
    catchUp();
    lagging = Set.of();
    bed.unmountAll();
    mount(way);
  }

  /** When no node lags any more: in the same session, in the next one, and in all copies. */
  void assertNothingIsLeft(Way way) {
    catchUp();
    forget();
    assertEachReadsItsOwnSource();
    if (!way.isWritable()) {
      bed.awaitStagingIdle();
      verify();
    }
    mountAgain(way);
    assertEachReadsItsOwnSource();
    if (!way.isWritable()) {
      bed.awaitStagingIdle();
      verify("--source");
      forget();
      views.forEach(view -> view.fail(SourceView.Operation.READ, "*"));
      assertEachReadsItsOwnSource();
    }
  }

  private void forget() {
    bed.onAll(node -> Machine.forget(node.mounted().mountpoint()));
  }

  private void verify(String... options) {
    bed.onAll(
        node -> {
          List<String> line = new ArrayList<>(List.of("verify"));
          line.addAll(List.of(options));
          line.add(node.mounted().mountpoint().toString());
          node.pmfs().run(line.toArray(String[]::new)).expect(0);
        });
  }

  @Override
  public void close() {
    views.forEach(NodeView::mend);
    bed.close();
    views.forEach(NodeView::close);
  }
}
