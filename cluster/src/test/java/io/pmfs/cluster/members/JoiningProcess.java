package io.pmfs.cluster.members;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.common.base.Throwables;
import io.pmfs.posix.Await;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

/**
 * Members with addresses of their own in one process, which measures how long they take to meet.
 * Prints milliseconds: until all but one that joined at the same time saw each other, until the
 * last one saw all, and was seen by all, and until one of them was gone from all views after it
 * left.
 */
final class JoiningProcess {
  private static final Duration PATIENCE = Duration.ofMinutes(5);
  private static final String SECRET = "the secret of the test";

  private final String nodes;
  private final String cluster = "joining-" + UUID.randomUUID();
  private final List<Membership> members = new ArrayList<>();

  private JoiningProcess(String nodes) {
    this.nodes = nodes;
  }

  /**
   * Measures.
   *
   * @param args how many members; the nodes of their list that are not members, with commas between
   *     them; the network of the members, to which their numbers are appended
   */
  public static void main(String[] args) {
    int status = 1;
    try {
      measure(args);
      status = 0;
    } catch (Exception e) {
      System.out.println(Throwables.getStackTraceAsString(e));
    }
    // Threads of the group would go on.
    System.exit(status);
  }

  private static void measure(String[] args) throws Exception {
    int count = Integer.parseInt(args[0]);
    String network = args[2];
    // What a process does for the first time takes longer, and here it would do so for all at once.
    measure(3, IntStream.rangeClosed(1, 3).mapToObj(i -> network + i).toList(), network);
    List<String> nodes = new ArrayList<>();
    // Those that are absent come first: who tried them in turn would reach the members last.
    if (!args[1].isEmpty()) {
      nodes.addAll(List.of(args[1].split(",", -1)));
    }
    IntStream.rangeClosed(1, count).forEach(i -> nodes.add(network + i));
    System.out.println("measured " + measure(count, nodes, network));
  }

  private static String measure(int count, List<String> nodes, String network) throws Exception {
    JoiningProcess process = new JoiningProcess(String.join(",", nodes));
    long begin = System.nanoTime();
    List<CompletableFuture<Membership>> joining =
        IntStream.range(1, count)
            .mapToObj(
                i -> {
                  CompletableFuture<Membership> joined = new CompletableFuture<>();
                  new Thread(() -> joined.complete(process.join(network, i))).start();
                  return joined;
                })
            .toList();
    joining.forEach(each -> process.members.add(each.join()));
    process.awaitAll(count - 1);
    long together = System.nanoTime();
    process.members.add(process.join(network, count));
    process.awaitAll(count);
    long admitted = System.nanoTime();
    process.members.remove(0).close();
    process.awaitAll(count - 1);
    long gone = System.nanoTime();
    process.members.forEach(Membership::close);
    return millis(together - begin)
        + " "
        + millis(admitted - together)
        + " "
        + millis(gone - admitted);
  }

  private static long millis(long nanos) {
    return nanos / 1_000_000;
  }

  private Membership join(String network, int number) {
    try {
      String name = "m" + number;
      UUID id = UUID.nameUUIDFromBytes(name.getBytes(UTF_8));
      String address = network + number;
      return InfinispanMembership.join(
          MemberProcess.settings(cluster, address, nodes, SECRET, GroupTimings.DEFAULTS),
          new Member(id, System.nanoTime(), name, address, 1),
          Duration.ofMillis(10));
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private void awaitAll(int count) throws InterruptedException {
    Await.until(
        () -> count + " in " + members.stream().map(m -> m.view().members().size()).toList(),
        PATIENCE,
        () -> members.stream().allMatch(member -> member.view().members().size() == count));
  }
}
