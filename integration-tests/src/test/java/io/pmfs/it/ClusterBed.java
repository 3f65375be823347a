package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Nodes that mount one dataset as a cluster, and what its source is asked for.
 *
 * <p>Until a node has met the others it is alone. So counts of tests are differences, and begin
 * when all have met.
 */
final class ClusterBed implements AutoCloseable {
  static final Duration PATIENCE = Duration.ofSeconds(90);

  /** Where a test counts exactly: a node of a busy machine may be silent for a while. */
  static final List<String> PATIENT =
      List.of("--peer-timeouts", "connect=10s,first-byte=30s,stall=30s");

  private final List<Node> nodes;
  private final @Nullable Nodes network;
  private final Scratch scratch = new Scratch();
  private final Path secret = scratch.root().resolve("secret");
  private final String name;
  private final Dataset dataset;

  /**
   * A network of nodes and a dataset: files in directories of ten, and what is no plain file.
   *
   * @param sizes of its files
   */
  ClusterBed(int count, int... sizes) {
    this.network = new Nodes(count);
    this.nodes = network.all();
    this.name = "job";
    writeSecret(secret, "a secret of these nodes, and of no others", "rw-------");
    this.dataset = Dataset.create(scratch.directory("source"), sizes);
    String script =
        "cd \"$1\" && mkdir -p deep/er empty && ln -s ../part-000/file-00000 deep/link"
            + " && printf latin > deep/er/\"$(printf 'caf\\351')\"";
    Command.run("sh", "-c", script, "sh", dataset.root().toString()).expect(0);
  }

  /**
   * Gives each node a view of the source of its own; before anything is mounted. The test itself
   * sees the files as they are.
   */
  List<NodeView> viewByNode() {
    scratch.privateBind("source");
    return nodes.parallelStream().map(node -> new NodeView(node, dataset.root())).toList();
  }

  private ClusterBed(ClusterBed other, String name, Dataset dataset) {
    this.network = null;
    this.nodes = other.nodes.stream().map(Node::beside).toList();
    this.name = name;
    writeSecret(secret, "a secret of these nodes, and of no others", "rw-------");
    this.dataset = dataset;
  }

  /** Another mount on each of the same nodes, with another name or dataset. */
  ClusterBed beside(String otherName, Dataset otherDataset) {
    return new ClusterBed(this, otherName, otherDataset);
  }

  static void writeSecret(Path file, String text, String mode) {
    try {
      Files.writeString(file, text);
      Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(mode));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  Nodes network() {
    return Objects.requireNonNull(network);
  }

  List<Node> nodes() {
    return nodes;
  }

  Node node(int index) {
    return nodes.get(index);
  }

  Dataset dataset() {
    return dataset;
  }

  Scratch scratch() {
    return scratch;
  }

  Path secret() {
    return secret;
  }

  /** The addresses of all nodes, as {@code --nodes} takes them. */
  String addresses() {
    return nodes.stream().map(Node::address).collect(Collectors.joining(","));
  }

  /** What makes a mount a member, and more options. */
  String[] options(String... more) {
    Map<String, String> defaults = new LinkedHashMap<>();
    defaults.put("--cluster", name);
    defaults.put("--nodes", addresses());
    defaults.put("--cluster-secret-file", secret.toString());
    defaults.keySet().removeAll(List.of(more));
    List<String> options = new ArrayList<>();
    defaults.forEach((option, value) -> options.addAll(List.of(option, value)));
    options.addAll(List.of(more));
    return options.toArray(String[]::new);
  }

  MountedPmfs mount(Node node, String... more) {
    return node.mount(dataset.root(), options(more));
  }

  /** Mounts on all nodes at once, and waits until each has met the others. */
  void mountAll(String... more) {
    mountAll(node -> List.of(more));
  }

  void mountAll(Function<Node, List<String>> more) {
    onEach(nodes, node -> mount(node, more.apply(node).toArray(String[]::new)));
    awaitMembers(nodes.size());
  }

  /** Unmounts everywhere, on the first node last; tiers and state stay. */
  void unmountAll() {
    onEach(nodes.subList(1, nodes.size()), Node::unmount);
    node(0).unmount();
  }

  /** Waits until each mounted node sees so many members, itself among them. */
  void awaitMembers(int count) {
    mounted().forEach(node -> awaitMembers(node, count));
  }

  static void awaitMembers(Node node, int count) {
    Status[] last = new Status[1];
    Await.until(
        () -> node + " sees " + count + " members: " + last[0],
        PATIENCE,
        () -> {
          last[0] = node.mounted().status();
          return last[0].size("cluster.members") == count;
        });
  }

  /** Waits until no node has anything left to copy. */
  void awaitStagingIdle() {
    mounted().forEach(node -> node.mounted().awaitStagingIdle());
  }

  /**
   * What the source was asked for by all nodes that are mounted: each kind, as status has it, but
   * for its free space, as for {@link Status#sourceRequests}.
   */
  record Asked(Map<String, Long> counts) {
    private static final List<String> KINDS =
        List.of("opens", "reads", "bytes", "stats", "lists", "readlinks", "xattrs", "seeks");

    private static Asked of(ToLongFunction<String> count) {
      Map<String, Long> counts = new LinkedHashMap<>();
      KINDS.forEach(kind -> counts.put(kind, count.applyAsLong(kind)));
      return new Asked(counts);
    }

    static Asked nothing() {
      return of(kind -> 0);
    }

    /** As status calls it. */
    long count(String kind) {
      return Objects.requireNonNull(counts.get(kind), kind);
    }

    long bytes() {
      return count("bytes");
    }

    long lists() {
      return count("lists");
    }

    Asked minus(Asked before) {
      return of(kind -> count(kind) - before.count(kind));
    }
  }

  Asked asked() {
    return Asked.of(kind -> sum("sourceOperations." + kind));
  }

  /** A number of the status, added up over the mounted nodes. */
  long sum(String path) {
    return mounted().stream().mapToLong(node -> node.mounted().status().number(path)).sum();
  }

  private List<Node> mounted() {
    return nodes.stream().filter(Node::isMounted).toList();
  }

  /** What the source is asked for meanwhile, and by what is copied behind it. */
  Asked askedBy(Runnable work) {
    awaitStagingIdle();
    Asked before = asked();
    work.run();
    awaitStagingIdle();
    return asked().minus(before);
  }

  /**
   * Reads the dataset on all mounted nodes at the same time, each in an order of its own, and
   * compares every byte and every attribute. The kernel forgets everything first, so that the
   * daemons are asked.
   */
  void epoch() {
    Machine.dropCaches();
    onAll(this::readAll);
  }

  /** Does something on all mounted nodes at the same time. */
  void onAll(Consumer<Node> work) {
    onEach(mounted(), work);
  }

  private static void onEach(List<Node> nodes, Consumer<Node> work) {
    CompletableFuture<?>[] running =
        nodes.stream()
            .map(
                node ->
                    CompletableFuture.runAsync(
                        () -> work.accept(node), task -> new Thread(task, "on " + node).start()))
            .toArray(CompletableFuture<?>[]::new);
    CompletableFuture.allOf(running).join();
  }

  /** Reads the dataset on one node and compares it. */
  void readAll(Node node) {
    Path mountpoint = node.mounted().mountpoint();
    List<Dataset.Item> items = new ArrayList<>(dataset.items());
    Collections.shuffle(items, new Random(node.address().hashCode()));
    items.forEach(item -> Dataset.assertEqualBelow(mountpoint, item));
    assertSameTree(dataset.root(), mountpoint);
  }

  private static void assertSameTree(Path expected, Path actual) {
    Command.run("diff", "-r", "--no-dereference", expected.toString(), actual.toString()).expect(0);
    assertThat(attributes(actual)).isEqualTo(attributes(expected));
  }

  private static String attributes(Path directory) {
    String find = "cd \"$1\" && find . -printf '%P %y %m %U %G %s %T@ %l\\n' | LC_ALL=C sort";
    return Command.run("sh", "-c", find, "sh", directory.toString()).expect(0).out();
  }

  /** The bytes of all files of the source. */
  long bytes() {
    return find("-type", "f", "-printf", "%s\n").lines().mapToLong(Long::parseLong).sum();
  }

  /** The directories of the source, its root among them. */
  long directories() {
    return find("-type", "d").lines().count();
  }

  /** What find(1) finds in the source, as strace(1) writes it. */
  List<String> names(String... what) {
    List<String> all = new ArrayList<>(List.of(what));
    all.addAll(List.of("-printf", "%P\\n"));
    // The one name that is not ASCII, as Latin-1 has it.
    return find(all.toArray(String[]::new))
        .lines()
        .map(name -> name.replaceAll("caf.*", "caf\\\\351"))
        .toList();
  }

  private String find(String... what) {
    List<String> line = new ArrayList<>(List.of("find", dataset.root().toString()));
    line.addAll(List.of(what));
    return Command.run(line.toArray(String[]::new)).expect(0).out();
  }

  @Override
  public void close() {
    try {
      if (network == null) {
        nodes.forEach(node -> node.pmfs().close());
      } else {
        network.close();
      }
    } finally {
      scratch.close();
    }
  }
}
