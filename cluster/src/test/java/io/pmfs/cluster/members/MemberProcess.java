package io.pmfs.cluster.members;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.common.net.InetAddresses;
import java.net.InetAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.UUID;
import java.util.stream.Collectors;

/**
 * A member in a process of its own, for tests and for trying things by hand. Prints a line for each
 * view, the members' names in alphabetical order; leaves when its standard input ends.
 */
final class MemberProcess {
  /** For tests on one machine. */
  static final GroupTimings QUICK =
      new GroupTimings(
          Duration.ofSeconds(2),
          Duration.ofMillis(500),
          Duration.ofMillis(500),
          Duration.ofMillis(500),
          Duration.ofSeconds(1),
          Duration.ofMillis(250));

  private MemberProcess() {}

  /**
   * Joins, prints and leaves.
   *
   * @param args its name, the cluster's, its address, the nodes with commas between them or a
   *     directory (with a slash), the secret, and "quick" for shorter timings than usual
   */
  public static void main(String[] args) throws Exception {
    ClusterSettings settings =
        settings(
            args[1],
            args[2],
            args[3],
            args[4],
            args.length > 5 && args[5].equals("quick") ? QUICK : GroupTimings.DEFAULTS);
    UUID id = UUID.nameUUIDFromBytes(args[0].getBytes(UTF_8));
    Member self = new Member(id, System.nanoTime(), args[0], args[2], 1);
    Instant start = Instant.now();
    try (Membership membership =
        InfinispanMembership.join(settings, self, Duration.ofSeconds(20))) {
      System.out.println(
          "joined in "
              + Duration.between(start, Instant.now()).toMillis()
              + " ms by process "
              + ProcessHandle.current().pid());
      membership.onChange(MemberProcess::print);
      print(membership.view());
      // Any input before the end asks for the size of the heap.
      while (System.in.read() >= 0) {
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        System.out.println(
            "heap " + ((runtime.totalMemory() - runtime.freeMemory()) >> 10) + " KiB");
      }
    }
  }

  static ClusterSettings settings(
      String cluster, String address, String nodes, String secret, GroupTimings timings) {
    InetAddress own = InetAddresses.forString(address);
    boolean isDirectory = nodes.contains("/");
    return new ClusterSettings(
        cluster,
        own,
        isDirectory ? List.of() : NodeList.ofCommas(nodes),
        isDirectory ? Path.of(nodes) : null,
        ClusterSecret.ofText(secret, "secret"),
        timings);
  }

  private static void print(View view) {
    System.out.println(
        Instant.now()
            + " view "
            + view.members().stream().map(Member::name).sorted().collect(Collectors.joining(",")));
  }
}
