package io.pmfs.cluster.members;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.posix.OnRequest;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * How long sixteen members take to meet, and to admit another, with the default timings, while most
 * nodes of their list are absent. They are in a network namespace of the test. Prints what it
 * measured, which is in docs/results/cluster.md.
 */
@OnRequest("cluster")
final class JoiningTest {
  private static final int MEMBERS = 16;
  private static final int ABSENT = 64;

  /** How soon a member must be in the view of all. */
  private static final long GOAL_MS = Long.getLong("pmfs.joining.ms", 10_000);

  @TempDir Path directory;

  /** What becomes of packets to the nodes of the list that are not members. */
  enum Absent {
    /** There are none. */
    NONE("", 0),
    /** The machine is up, but nothing listens. */
    REFUSING("10.88.1.", ABSENT),
    /** The machine is down: no answer at all. */
    SILENT("10.99.0.", ABSENT);

    private final String network;
    private final int count;

    Absent(String network, int count) {
      this.network = network;
      this.count = count;
    }

    String addresses() {
      return IntStream.rangeClosed(1, count)
          .mapToObj(i -> network + i)
          .collect(Collectors.joining(","));
    }
  }

  @ParameterizedTest
  @EnumSource
  void join_whileMostNodesAreAbsent_takesSeconds(Absent absent) throws Exception {
    String setUp =
        "ip link set lo up && ip route add local 10.88.0.0/16 dev lo"
            // Packets to an end of a cable at whose other end nobody has an address are lost.
            + " && ip link add absent type veth peer name lost && ip link set lost up"
            + " && ip link set absent arp off up && ip addr add 10.99.255.1/16 dev absent"
            + " && echo made && exec \"$@\"";
    Path output = directory.resolve("output");
    Process process =
        new ProcessBuilder(
                List.of(
                    "unshare",
                    "--net",
                    "sh",
                    "-c",
                    setUp,
                    "sh",
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "-cp",
                    System.getProperty("java.class.path"),
                    JoiningProcess.class.getName(),
                    Integer.toString(MEMBERS),
                    absent.addresses(),
                    "10.88.0."))
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    try {
      assertThat(process.waitFor(15, TimeUnit.MINUTES)).isTrue();
    } finally {
      process.destroyForcibly();
    }
    String said = Files.readString(output);
    assumeTrue(said.contains("made"), () -> "needs network namespaces: " + said);
    String measured =
        said.lines()
            .filter(line -> line.startsWith("measured "))
            .findFirst()
            .orElseThrow(
                () -> new AssertionError(said.length() + " characters, at last: " + end(said)));
    List<Long> millis =
        List.of(measured.split(" ", -1)).stream().skip(1).map(Long::parseLong).toList();
    System.out.printf(
        "%d members, %d absent nodes (%s): %.1f s until %d saw each other, %.1f s until another one"
            + " was seen by all, %.1f s until one that left was gone%n",
        MEMBERS,
        absent.count,
        absent,
        millis.get(0) / 1e3,
        MEMBERS - 1,
        millis.get(1) / 1e3,
        millis.get(2) / 1e3);
    assertThat(Duration.ofMillis(millis.get(1))).isLessThan(Duration.ofMillis(GOAL_MS));
  }

  private static String end(String said) {
    return said.substring(Math.max(0, said.length() - 10_000));
  }
}
