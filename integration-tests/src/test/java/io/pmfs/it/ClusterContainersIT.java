package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A cluster end to end: containers that know each other by name and mount one dataset, of which
 * each byte leaves the source once, and what their readers see when one of them is gone.
 */
@Tag("docker")
@OnRequest("cluster")
@Tag("alone") // says how long the slowest read took
final class ClusterContainersIT {
  private static final Duration PATIENCE = Duration.ofMinutes(2);

  /** Where what is asked is counted: on a busy machine a healthy peer may be slow. */
  private static final String[] PATIENT = {
    "--peer-timeouts", "connect=10s,first-byte=30s,stall=30s"
  };

  /** Else copies answer all after a while. */
  private static final String[] ASK_PEERS = {"--remote-copies", "never"};

  private static final int READS = 50;
  private static final String SECRET = "/etc/pmfs-secret";

  /** Small files, some of several blocks, and an empty one. */
  private static final int[] SIZES =
      IntStream.concat(IntStream.range(0, 40).map(i -> i * 2_500), IntStream.of(1 << 20, 3_000_001))
          .toArray();

  private Scratch scratch;
  private Dataset dataset;
  private @Nullable Containers started;

  @BeforeEach
  void create() {
    Containers.require();
    scratch = new Scratch();
    dataset = Dataset.create(scratch.directory("source"), SIZES);
  }

  @AfterEach
  void remove() {
    if (started != null) {
      started.close();
    }
    if (scratch != null) {
      scratch.close();
    }
  }

  @Test
  void epochs_onTwoNodes_takeEachByteFromTheSourceOnce() {
    takeEachByteOnce(2);
  }

  @Test
  void epochs_onFourNodes_takeEachByteFromTheSourceOnce() {
    takeEachByteOnce(4);
  }

  private void takeEachByteOnce(int count) {
    start(count, PATIENT);
    List<String> names = containers().all().stream().map(ContainerNode::alias).toList();
    for (ContainerNode node : containers().all()) {
      assertThat(members(node.status(), "node")).containsExactlyInAnyOrderElementsOf(names);
    }
    String source = sourceTree(containers().get(0));
    assertThat(source.lines().filter(line -> line.endsWith("  -"))).hasSize(SIZES.length);

    epoch(source);
    assertThat(containers().sum("sourceOperations.bytes")).isEqualTo(dataset.bytes());
    long asked = containers().sum(Status::sourceRequests);
    epoch(source);
    assertThat(containers().sum(Status::sourceRequests) - asked).as("second epoch").isZero();
  }

  /** Reads all on all nodes at the same time, and waits for what is copied behind it. */
  private void epoch(String expected) {
    onAll(node -> assertThat(mountedTree(node)).as("%s", node).isEqualTo(expected));
    awaitStagingIdle();
  }

  /** What happens to a node. */
  private enum Fault {
    PAUSED {
      @Override
      void begin(ContainerNode node) {
        node.pause();
      }

      @Override
      void end(ContainerNode node) {
        node.unpause();
      }
    },
    KILLED {
      @Override
      void begin(ContainerNode node) {
        node.kill();
        Await.until("killed", PATIENCE, () -> !node.isRunning());
      }

      @Override
      void end(ContainerNode node) {
        node.restart();
      }
    },
    DISCONNECTED {
      @Override
      void begin(ContainerNode node) {
        node.disconnect();
      }

      @Override
      void end(ContainerNode node) {
        node.reconnect();
      }
    };

    abstract void begin(ContainerNode node);

    abstract void end(ContainerNode node);
  }

  @ParameterizedTest
  @EnumSource
  void fault_ofOneNodeOfThree_failsNoRead(Fault fault) {
    startForFaults(3);
    suffer(fault, containers().get(1));
  }

  @ParameterizedTest
  @EnumSource
  void fault_ofEachNodeOfFour_failsNoRead(Fault fault) {
    startForFaults(4);
    containers().all().forEach(node -> suffer(fault, node));
  }

  private void startForFaults(int count) {
    start(count, ASK_PEERS);
    epoch(sourceTree(containers().get(0)));
  }

  /** Has all nodes read and compare while something happens to one of them and passes. */
  private void suffer(Fault fault, ContainerNode victim) {
    List<ContainerNode> others = new ArrayList<>(containers().all());
    others.remove(victim);
    List<ContainerReader> readers = others.stream().map(ContainerReader::new).toList();
    ContainerReader own = new ContainerReader(victim);
    own.awaitMore(READS);
    awaitMore(readers);
    if (fault == Fault.PAUSED) {
      // The freezer waits for a process that waits for a daemon which is frozen already.
      own.close();
    }
    long copies = victim.status().number("tiers.0.copies");

    fault.begin(victim);
    others.forEach(node -> awaitMembers(node, others.size()));
    awaitMore(readers);
    if (fault == Fault.DISCONNECTED) {
      awaitMembers(victim, 1);
      own.awaitMore(READS);
    }
    fault.end(victim);
    if (fault == Fault.KILLED) {
      mount(victim, ASK_PEERS);
      assertThat(victim.status().number("tiers.0.copies")).isGreaterThanOrEqualTo(copies);
    }
    awaitAllMembers();
    if (fault != Fault.DISCONNECTED) {
      own = new ContainerReader(victim);
    }
    // What was copied meanwhile would be read without asking anybody.
    onAll(node -> node.run("pmfs", "evict", ContainerNode.MOUNTPOINT).expect(0));
    awaitMore(readers);
    own.awaitMore(READS);
    awaitNoneSuspected();
    System.out.printf(
        "%s was %s: its longest read took %s, those of the others %s%n",
        victim,
        fault.name().toLowerCase(Locale.ROOT),
        own.longest(),
        readers.stream().map(ContainerReader::longest).toList());
    own.close();
    readers.forEach(ContainerReader::close);
  }

  private Containers containers() {
    return Objects.requireNonNull(started);
  }

  private static void awaitMore(List<ContainerReader> readers) {
    readers.forEach(reader -> reader.awaitMore(READS));
  }

  /** Containers with the dataset mounted in each, which have met. */
  private void start(int count, String... options) {
    started = new Containers(count, dataset.root());
    String others = "cd $1 && ln -s file-00000 part-000/link && mkdir -p empty/er";
    containers().get(0).run("sh", "-c", others, "sh", Containers.SOURCE).expect(0);
    onAll(node -> mount(node, options));
    awaitAllMembers();
  }

  private void mount(ContainerNode node, String... options) {
    String secret = "umask 077 && echo 'a secret of these containers' >$1";
    node.run("sh", "-c", secret, "sh", SECRET).expect(0);
    List<String> all = new ArrayList<>(List.of("--cluster", "job", "--nodes", names()));
    all.addAll(List.of("--cluster-secret-file", SECRET));
    all.addAll(Arrays.asList(options));
    node.mount(all.toArray(String[]::new));
  }

  private String names() {
    return containers().all().stream().map(ContainerNode::alias).collect(Collectors.joining(","));
  }

  private void awaitAllMembers() {
    containers().all().forEach(node -> awaitMembers(node, containers().all().size()));
  }

  private static void awaitMembers(ContainerNode node, int count) {
    awaitStatus(node, count + " members", status -> members(status, "node").size() == count);
  }

  private void awaitNoneSuspected() {
    for (ContainerNode node : containers().all()) {
      awaitStatus(node, "none suspected", status -> !members(status, "suspected").contains("true"));
    }
  }

  private void awaitStagingIdle() {
    for (ContainerNode node : containers().all()) {
      awaitStatus(node, "nothing left to copy", status -> status.flag("staging.idle"));
    }
  }

  /** What a node's status says of the members, itself among them. */
  private static List<String> members(Status status, String field) {
    return IntStream.range(0, status.size("cluster.members"))
        .mapToObj(i -> status.text("cluster.members." + i + "." + field))
        .toList();
  }

  private static void awaitStatus(ContainerNode node, String what, Predicate<Status> condition) {
    Status[] last = new Status[1];
    Await.until(
        () -> node + ": " + what + ": " + last[0],
        PATIENCE,
        () -> {
          last[0] = node.status();
          return condition.test(last[0]);
        });
  }

  /** Does something on all nodes at the same time. */
  private void onAll(Consumer<ContainerNode> work) {
    CompletableFuture<?>[] running =
        containers().all().stream()
            .map(
                node ->
                    CompletableFuture.runAsync(
                        () -> work.accept(node), task -> new Thread(task, "on " + node).start()))
            .toArray(CompletableFuture<?>[]::new);
    CompletableFuture.allOf(running).join();
  }

  /** Attributes and contents of all that is mounted, which the daemon is asked for. */
  private static String mountedTree(ContainerNode node) {
    return tree(node, ContainerNode.MOUNTPOINT, "iflag=direct");
  }

  private static String sourceTree(ContainerNode node) {
    return tree(node, Containers.SOURCE, "iflag=fullblock");
  }

  private static String tree(ContainerNode node, String directory, String flag) {
    String script =
        "cd $1 && find . -printf '%P %y %m %U %G %s %T@ %l\\n' | LC_ALL=C sort"
            + " && find . -type f | LC_ALL=C sort | while read -r file;"
            + " do dd if=$file $2 bs=1M status=none | sha256sum || exit; done";
    return node.run("bash", "-o", "pipefail", "-c", script, "sh", directory, flag).expect(0).out();
  }
}
