package io.pmfs.cluster.members;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.posix.Await;
import io.pmfs.posix.Requested;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Several members in one process, and some in processes of their own, all on 127.0.0.1. */
@Timeout(300)
@Execution(ExecutionMode.CONCURRENT)
final class InfinispanMembershipTest {
  private static final Duration PATIENCE = Duration.ofSeconds(90);
  private static final String LOOPBACK = "127.0.0.1";
  private static final String SECRET = "the secret of the test";

  @TempDir Path directory;

  private final List<AutoCloseable> opened = new CopyOnWriteArrayList<>();

  /** Each test has ports of its own. */
  private final String cluster = "test-" + UUID.randomUUID();

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable each : opened) {
      each.close();
    }
  }

  private static Member member(String name) {
    UUID id = UUID.nameUUIDFromBytes(name.getBytes(UTF_8));
    return new Member(id, 1, name, LOOPBACK, 1);
  }

  private static ClusterSettings settings(
      String name, String address, String nodes, String secret) {
    return MemberProcess.settings(name, address, nodes, secret, MemberProcess.QUICK);
  }

  private Membership join(String name, String clusterName, String nodes, String secret) {
    try {
      Membership membership =
          InfinispanMembership.join(
              settings(clusterName, LOOPBACK, nodes, secret), member(name), PATIENCE);
      opened.add(membership);
      return membership;
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private Membership join(String name) {
    return join(name, cluster, LOOPBACK, SECRET);
  }

  private static List<String> names(Membership membership) {
    return membership.view().members().stream().map(Member::name).sorted().toList();
  }

  private static void awaitNames(Membership membership, String... names)
      throws InterruptedException {
    try {
      Await.until(
          membership + " sees " + List.of(names),
          PATIENCE,
          () -> names(membership).equals(List.of(names)));
    } catch (AssertionError e) {
      assertThat(names(membership)).containsExactly(names);
    }
  }

  @Test
  void join_nobodyElse_isAViewOfOne() {
    Membership alone = join("a");
    assertThat(alone.view().members()).containsExactly(member("a"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"list", "directory"})
  void join_allAtOnce_endInOneView(String how) throws Exception {
    String nodes = how.equals("list") ? LOOPBACK : directory + "/nodes";
    List<CompletableFuture<Membership>> joining = new ArrayList<>();
    for (String name : List.of("a", "b", "c", "d")) {
      joining.add(CompletableFuture.supplyAsync(() -> join(name, cluster, nodes, SECRET)));
    }
    for (CompletableFuture<Membership> each : joining) {
      awaitNames(each.get(), "a", "b", "c", "d");
    }
    assertThat(joining.get(0).get().view()).isEqualTo(joining.get(3).get().view());
  }

  @Test
  void view_othersJoinAndLeave_followsAndIsTold() throws Exception {
    Membership first = join("a");
    List<View> told = new CopyOnWriteArrayList<>();
    first.onChange(told::add);
    Membership second = join("b");
    awaitNames(first, "a", "b");
    awaitNames(second, "a", "b");
    assertThat(first.view().members()).contains(member("b"));
    second.close();
    second.close();
    awaitNames(first, "a");
    assertThat(told)
        .containsExactly(
            new View(List.of(member("a"), member("b"))), new View(List.of(member("a"))));
  }

  @Test
  void goodbye_isHeardByAllAndByThoseThatJoinLater() throws Exception {
    Membership first = join("a");
    Membership second = join("b");
    Membership third = join("c");
    awaitNames(first, "a", "b", "c");
    first.sayGoodbye();
    first.close();
    awaitNames(second, "b", "c");
    awaitNames(third, "b", "c");
    assertThat(second.farewells()).containsExactly(member("a"));
    assertThat(third.farewells()).containsExactly(member("a"));
    second.close(); // without a goodbye
    awaitNames(third, "c");
    assertThat(third.farewells()).containsExactly(member("a"));
    Membership later = join("d");
    awaitNames(later, "c", "d");
    Await.until("a said goodbye", PATIENCE, () -> later.farewells().equals(List.of(member("a"))));
  }

  @Test
  void view_firstMemberLeaves_othersStayTogether() throws Exception {
    Membership first = join("a");
    Membership second = join("b");
    Membership third = join("c");
    awaitNames(third, "a", "b", "c");
    first.close();
    awaitNames(second, "b", "c");
    awaitNames(third, "b", "c");
    Membership again = join("a");
    awaitNames(again, "a", "b", "c");
  }

  @Test
  void join_anotherSecret_isNotLetIn() throws Exception {
    Membership first = join("a", cluster, LOOPBACK, SECRET);
    Membership stranger = join("stranger", cluster, LOOPBACK, SECRET + "!");
    Membership second = join("b", cluster, LOOPBACK, SECRET);
    awaitNames(first, "a", "b");
    awaitNames(second, "a", "b");
    // Members look for others about once a second; a merge would have happened by now.
    Thread.sleep(4_000);
    assertThat(names(first)).containsExactly("a", "b");
    assertThat(names(stranger)).containsExactly("stranger");
  }

  @Test
  void join_anotherClusterOnTheSamePorts_isNotMet() throws Exception {
    String other = sameBasePort(cluster);
    Membership first = join("a");
    Membership otherFirst = join("x", other, LOOPBACK, SECRET);
    Membership second = join("b");
    Membership otherSecond = join("y", other, LOOPBACK, SECRET);
    awaitNames(first, "a", "b");
    awaitNames(second, "a", "b");
    awaitNames(otherFirst, "x", "y");
    awaitNames(otherSecond, "x", "y");
  }

  /** Another cluster name whose members use the same ports. */
  private static String sameBasePort(String name) {
    for (int i = 0; ; i++) {
      String other = "other-" + i;
      if (GroupChannel.basePort(other) == GroupChannel.basePort(name)) {
        return other;
      }
    }
  }

  /** One after the other they would take a minute, for each search of each member. */
  @Test
  void join_manyNodesOfTheListDoNotAnswer_areNotWaitedFor() throws Exception {
    StringBuilder nodes = new StringBuilder();
    for (int i = 1; i <= 100; i++) {
      InetAddress host = InetAddress.getByAddress(new byte[] {127, 0, 1, (byte) i});
      SilentPort port = new SilentPort(new InetSocketAddress(host, GroupChannel.basePort(cluster)));
      opened.add(port);
      nodes.append(host.getHostAddress()).append(',');
    }
    nodes.append(LOOPBACK);
    Membership first = join("a", cluster, nodes.toString(), SECRET);
    long begin = System.nanoTime();
    Membership second = join("b", cluster, nodes.toString(), SECRET);
    awaitNames(first, "a", "b");
    awaitNames(second, "a", "b");
    assertThat(System.nanoTime() - begin).isLessThan(15_000_000_000L);
    // What is searched for again and again holds up nothing else.
    second.close();
    awaitNames(first, "a");
  }

  @Test
  void join_firstPortIsSomebodyElsesWhoIsSilent_takesTheNext() throws Exception {
    try (ServerSocket silent =
        new ServerSocket(GroupChannel.basePort(cluster), 50, InetAddress.getLoopbackAddress())) {
      Membership first = join("a", cluster, LOOPBACK, SECRET);
      Membership second = join("b", cluster, LOOPBACK, SECRET);
      awaitNames(first, "a", "b");
      awaitNames(second, "a", "b");
      assertThat(silent.isClosed()).isFalse();
    }
  }

  /** Each keeps its connection as long as it can, and sends just enough not to be closed. */
  @Test
  void join_othersTrickleAtThePort_areNotWaitedFor() throws Exception {
    Membership first = join("a");
    byte[] helloOfTls = {22, 3, 1, 2, 0, 1, 0, 1, (byte) 0xfc, 3, 3};
    AtomicBoolean isOver = new AtomicBoolean();
    AtomicInteger trickling = new AtomicInteger();
    ExecutorService threads = Executors.newCachedThreadPool();
    try {
      for (int i = 0; i < 5; i++) {
        threads.execute(
            () -> {
              while (!isOver.get()) {
                try (Socket socket =
                    new Socket(InetAddress.getLoopbackAddress(), GroupChannel.basePort(cluster))) {
                  trickling.incrementAndGet();
                  for (int at = 0; !isOver.get(); at = Math.min(at + 1, helloOfTls.length - 1)) {
                    socket.getOutputStream().write(helloOfTls[at]);
                    Thread.sleep(300);
                  }
                } catch (IOException e) {
                  // The server closes it when its time is up.
                } catch (InterruptedException e) {
                  Thread.currentThread().interrupt();
                }
              }
            });
      }
      Await.until("bytes trickle", PATIENCE, () -> trickling.get() >= 5);
      Thread.sleep(500);

      Membership second = join("b");

      awaitNames(first, "a", "b");
      awaitNames(second, "a", "b");
      Await.until("bytes trickle", PATIENCE, () -> trickling.get() > 5);
    } finally {
      isOver.set(true);
      threads.shutdownNow();
    }
  }

  @Test
  void join_garbageAtThePort_doesNoHarm() throws Exception {
    Membership first = join("a", cluster, LOOPBACK, SECRET);
    Random random = new Random(1);
    for (int i = 0; i < 50; i++) {
      byte[] garbage = new byte[random.nextInt(3_000)];
      random.nextBytes(garbage);
      try (Socket socket =
          new Socket(InetAddress.getLoopbackAddress(), GroupChannel.basePort(cluster))) {
        socket.getOutputStream().write(garbage);
      } catch (IOException e) {
        assertThat(e).hasMessageMatching("(?s).*(reset|Broken pipe|closed).*");
      }
    }
    Membership second = join("b", cluster, LOOPBACK, SECRET);
    awaitNames(first, "a", "b");
    awaitNames(second, "a", "b");
  }

  @Test
  void view_processIsKilled_losesIt() throws Exception {
    Membership first = join("a", cluster, LOOPBACK, SECRET);
    Process process = start("p");
    awaitNames(first, "a", "p");
    process.destroyForcibly();
    awaitNames(first, "a");
  }

  /** The others take the dead one for a member for a while, then agree on who keeps what. */
  @ParameterizedTest
  @ValueSource(ints = {0, 10, 30, 60, 120, 250, 500, 1000, 1500})
  void goodbye_soonAfterAnotherWasKilled_isHeard(int millis) throws Exception {
    Requested.assume("cluster", List.of(0, 60, 500).contains(millis), "goodbyes after other times");
    Membership first = join("a");
    Membership second = join("b");
    Process process = start("p");
    awaitNames(first, "a", "b", "p");
    awaitNames(second, "a", "b", "p");
    process.destroyForcibly();
    Thread.sleep(millis);
    second.sayGoodbye();
    second.close();
    awaitNames(first, "a");
    assertThat(first.farewells()).containsExactly(member("b"));
  }

  /** It has seen the same members before and after, unlike the others. */
  @Test
  void view_memberWasFrozen_hasItAgain() throws Exception {
    List<Membership> others = List.of(join("a"), join("b"));
    Process process = start("p");
    for (Membership each : others) {
      awaitNames(each, "a", "b", "p");
    }
    Await.until("the process sees all", PATIENCE, () -> output().contains(" view a,b,p"));
    // Otherwise it would make its remaining announcements of this view when it continues.
    Thread.sleep(2_000);
    signal(process, "STOP");
    for (Membership each : others) {
      awaitNames(each, "a", "b");
    }
    // The remaining members remove its announcement when they look for the second time.
    Thread.sleep(1_000);
    signal(process, "CONT");
    for (Membership each : others) {
      awaitNames(each, "a", "b", "p");
    }
  }

  private String output() {
    try {
      return Files.readString(directory.resolve("output"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void signal(Process process, String name) throws Exception {
    String[] command = {"kill", "-" + name, Long.toString(process.pid())};
    assertThat(new ProcessBuilder(command).inheritIO().start().waitFor()).isZero();
  }

  @Test
  void view_memberRestartsBeforeItIsMissed_hasTheNewInstance() throws Exception {
    Membership first = join("a");
    Process process = start("p");
    awaitNames(first, "a", "p");
    process.destroyForcibly();
    join("p");
    Await.until("p is there", PATIENCE, () -> first.view().members().contains(member("p")));
    assertThat(names(first)).containsExactly("a", "p");
  }

  private Process start(String name) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"));
    command.add(System.getProperty("java.class.path"));
    command.add(MemberProcess.class.getName());
    command.addAll(List.of(name, cluster, LOOPBACK, LOOPBACK, SECRET, "quick"));
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(directory.resolve("output").toFile())
            .start();
    opened.add(process::destroyForcibly);
    return process;
  }

  @Test
  void join_addressOfAnotherMachine_isRefused() {
    ClusterSettings settings = settings(cluster, "203.0.113.1", LOOPBACK, SECRET);
    assertThatThrownBy(() -> InfinispanMembership.join(settings, member("a"), PATIENCE))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("cluster " + cluster + ": 203.0.113.1 is not an address of this machine");
  }

  @Test
  void join_hostThatDoesNotExist_isLeftOut() throws Exception {
    Membership first = join("a", cluster, LOOPBACK + ",no-such-host.invalid", SECRET);
    Membership second = join("b", cluster, LOOPBACK + ",no-such-host.invalid", SECRET);
    awaitNames(first, "a", "b");
    awaitNames(second, "a", "b");
  }

  @Test
  void join_everyPortInUse_goesOnInTheBackground() throws Exception {
    List<ServerSocket> taken = new ArrayList<>();
    for (int i = 0; i < GroupChannel.PORTS; i++) {
      taken.add(
          new ServerSocket(
              GroupChannel.basePort(cluster) + i, 1, InetAddress.getLoopbackAddress()));
    }
    Membership waiting =
        InfinispanMembership.join(
            settings(cluster, LOOPBACK, LOOPBACK, SECRET), member("a"), Duration.ofMillis(10));
    opened.add(waiting);
    assertThat(names(waiting)).containsExactly("a");
    for (ServerSocket each : taken) {
      each.close();
    }
    Membership second = join("b");
    awaitNames(second, "a", "b");
    awaitNames(waiting, "a", "b");
  }

  @Test
  void basePort_anyName_leavesRoomBelowTheEphemeralPorts() {
    for (int i = 0; i < 100_000; i++) {
      assertThat(GroupChannel.basePort("name" + i)).isBetween(20_000, 32_768 - GroupChannel.PORTS);
    }
  }
}
