package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.Gson;
import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.cli.control.MountClient;
import io.pmfs.daemon.control.ControlRequests;
import io.pmfs.daemon.control.ControlServer;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.tasks.Drains;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.Registration;
import io.pmfs.mounts.Registry;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.WritableFileSystem;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Commands that have read an outdated record of a daemon. */
@Timeout(120)
@SuppressWarnings("try") // daemons only answer requests
final class OldRecordsTest {
  private static final Duration LIMIT = Duration.ofSeconds(10);

  /** More than the kernel has. */
  private static final long NO_PROCESS = 1 << 22;

  private static final long SELF = ProcessHandle.current().pid();

  @TempDir private Path temporary;
  private TestWorld world;
  private Path first;
  private Path second;
  private Registry registry;
  private final List<String> unmounts = new ArrayList<>();

  /** Whose daemon says at the end that it has left nothing. */
  private @Nullable Registration saved;

  private @Nullable MountFailure refusal;

  /** Null for a read-only mount. */
  private @Nullable Drains drains;

  @SuppressWarnings("NullAway.Init")
  OldRecordsTest() {}

  @BeforeEach
  void makeWorld() throws Exception {
    world = new TestWorld(temporary);
    first = world.makeDirectory("a");
    second = world.makeDirectory("b");
    registry = world.registry();
  }

  /** A daemon that has the session 0:30. */
  private final class Requests implements ControlRequests {
    @Override
    public StatusReport status() {
      throw new IllegalStateException("not asked here");
    }

    @Override
    public @Nullable NodesReport nodes() {
      return null;
    }

    @Override
    public KeptTasks tasks() {
      throw new IllegalStateException("not asked here");
    }

    @Override
    public @Nullable Drains drains() {
      return drains;
    }

    @Override
    public void upgrade() {}

    @Override
    public boolean serves(String device) {
      return device.equals("0:30");
    }

    @Override
    public void unmount(boolean lazy, boolean purge, boolean abandon) throws MountFailure {
      unmounts.add("purge=" + purge);
      Registration place = saved;
      try {
        if (place != null) {
          place.markSaved();
        }
      } catch (IOException e) {
        throw new MountFailure(ExitStatus.FAILED, "not marked", e);
      }
      world.mountinfo();
      MountFailure failure = refusal;
      if (failure != null) {
        throw failure;
      }
    }
  }

  /** Has no changes. */
  private static WritableFileSystem outputs(Runnable drain) {
    return (WritableFileSystem)
        Proxy.newProxyInstance(
            WritableFileSystem.class.getClassLoader(),
            new Class<?>[] {WritableFileSystem.class},
            (self, method, arguments) ->
                switch (method.getName()) {
                  case "drain" -> {
                    drain.run();
                    yield true;
                  }
                  case "drainStatus" -> DrainStatus.NONE;
                  default -> List.of();
                });
  }

  private DaemonRecord entry(Path socket, long pid) {
    return DaemonRecord.of(first.toString(), "/source", pid, socket.toString(), "/log")
        .withDevice("0:30");
  }

  private static String line(Path mountpoint, String source, String device) {
    return TestWorld.line(mountpoint, "fuse.pmfs", source).replace("0:30", device);
  }

  @Test
  void ask_daemonThatMovesItsSocket_asksItThere() throws Exception {
    world.mountinfo(line(second, "/source", "0:30"));
    Registration before = Objects.requireNonNull(registry.register(first));
    DaemonRecord old = entry(before.socket(), SELF);
    before.close();
    MountClient client = new MountClient(old, world.surroundings());
    MountClient other = new MountClient(old, world.surroundings());
    CompletableFuture<ControlClient.Answer> answer =
        CompletableFuture.supplyAsync(() -> ask(client));
    Thread.sleep(300); // until a new daemon writes its record
    try (Registration next = Objects.requireNonNull(registry.registerDetached(first, "0:30"));
        ControlServer server = ControlServer.start(next.socket(), new Requests())) {
      next.publish(old.withSocket(next.socket(), true));

      assertThat(answer.get(LIMIT.toSeconds(), TimeUnit.SECONDS).status()).isEqualTo(200);
      assertThat(client.daemon().socket()).isEqualTo(next.socket().toString());
      assertThat(other.askOnlyThisOne(HttpMethod.GET, "/version", LIMIT).status()).isEqualTo(200);
    }
  }

  private static ControlClient.Answer ask(MountClient client) {
    try {
      return client.ask(HttpMethod.GET, "/version", LIMIT);
    } catch (IOException | MountFailure e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void ask_processThatIsGone_failsAtOnce() throws Exception {
    world.mountinfo(line(second, "/source", "0:30"));
    DaemonRecord gone = entry(temporary.resolve("x.sock"), NO_PROCESS);
    long begin = System.nanoTime();

    assertThatThrownBy(
            () -> new MountClient(gone, world.surroundings()).ask(HttpMethod.GET, "/x", LIMIT))
        .isInstanceOf(ControlClient.UnreachableException.class);

    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(4));
  }

  @Test
  void ask_daemonThatHasReceivedTheRequest_isNotAskedAgain() throws Exception {
    world.mountinfo(line(first, "/source", "0:30"));
    Path socket = temporary.resolve("x.sock");
    try (Registration place = Objects.requireNonNull(registry.register(first));
        ControlServer next = ControlServer.start(place.socket(), new Requests());
        ServerSocketChannel dying = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      place.publish(entry(place.socket(), SELF));
      dying.bind(UnixDomainSocketAddress.of(socket));
      CompletableFuture<Void> died =
          CompletableFuture.runAsync(
              () -> {
                try (SocketChannel one = dying.accept()) {
                  one.read(ByteBuffer.allocate(1000));
                } catch (IOException e) {
                  throw new IllegalStateException(e);
                }
              });

      assertThatThrownBy(
              () ->
                  new MountClient(entry(socket, SELF), world.surroundings())
                      .ask(HttpMethod.POST, "/umount", LIMIT))
          .isInstanceOf(IOException.class)
          .isNotInstanceOf(ControlClient.UnreachableException.class);
      died.get();
      assertThat(unmounts).isEmpty();
    }
  }

  /** A daemon whose record has the number of an ended session. */
  private ControlServer serve(Registration place) throws IOException {
    place.publish(entry(place.socket(), SELF).withSessions(List.of("0:30", "0:31")));
    return ControlServer.start(place.socket(), new Requests());
  }

  /** The kernel has reused an ended session's number for a mount of another source. */
  @Test
  void umountPurge_besideAMountWithTheNumberOfAnEndedSession_purges() throws Exception {
    Path other = world.makeDirectory("other");
    world.mountinfo(line(first, "/source", "0:30"), line(other, "/another", "0:31"));
    try (Registration place = Objects.requireNonNull(registry.register(first));
        ControlServer server = serve(place)) {
      saved = place;
      assertThat(world.execute("umount", "--purge", "a")).as(world.errors()).isZero();
      assertThat(unmounts).containsExactly("purge=true");
    }
  }

  /** It has died, or another mount uses the copies. */
  @Test
  void umountPurge_whoseDaemonDoesNotSayThatItPurged_isDoneInPart() throws Exception {
    world.mountinfo(line(first, "/source", "0:30"));
    try (Registration place = Objects.requireNonNull(registry.register(first));
        ControlServer server = serve(place)) {
      assertThat(world.execute("umount", "--purge", "a")).isEqualTo(ExitStatus.PARTLY);
      assertThat(world.errors()).contains("a: unmounted, but not everything was purged: see /log");
    }
  }

  /** Its supervisor is gone: the command unmounts, and the daemon ends as usual. */
  @Test
  void umountPurge_ofADaemonThatCannotUnmount_isDoneInPart() throws Exception {
    world.mountinfo(line(first, "/source", "0:30"));
    try (Registration place = Objects.requireNonNull(registry.register(first));
        ControlServer server = serve(place)) {
      saved = place;
      refusal = new MountFailure(ExitStatus.CANNOT, "no supervisor");
      assertThat(world.execute("umount", "--purge", "a")).isEqualTo(ExitStatus.PARTLY);
      assertThat(world.errors()).contains("a: unmounted, but not everything was purged");
    }
  }

  /**
   * The kernel has reused the number for a mount of the same source, whose daemon has no record
   * yet.
   */
  @Test
  void umountPurge_ofAMountThatIsNotTheDaemons_isRefusedByTheDaemon() throws Exception {
    world.mountinfo(line(second, "/source", "0:31"));
    try (Registration place = Objects.requireNonNull(registry.register(first));
        ControlServer server = serve(place)) {
      assertThat(world.execute("umount", "--purge", "b")).isEqualTo(ExitStatus.FAILED);
      assertThat(world.errors()).contains("b: 0:31: not a session of this daemon, or no longer");
      assertThat(unmounts).isEmpty();
    }
  }

  private static String writable(Path mountpoint) {
    return line(mountpoint, "/source", "0:30").replaceAll("\\bro\\b", "rw");
  }

  @Test
  void umount_ofAWritableMountWithoutADaemon_isRefused() throws Exception {
    world.mountinfo(writable(first));
    for (String option : List.of("--timeout=60s", "--lazy", "--grace=0s")) {
      assertThat(world.execute("umount", option, "a")).isEqualTo(ExitStatus.PARTLY);
      assertThat(world.errors())
          .isEqualTo(
              "pmfs: "
                  + first
                  + ": mounted by another user, or with another PMFS_RUNTIME_DIR; run this command"
                  + " in the same way; pmfs umount --no-drain does not wait for it\n");
    }
  }

  /** Root may not look whether a user's mount is stale, but its record says so. */
  @Test
  void umount_ofAWritableMountWhoseDaemonHasDied_goesOn() throws Exception {
    Registration place = Objects.requireNonNull(registry.register(first));
    Path socket = place.socket();
    place.close();
    Files.writeString(
        socket.resolveSibling(Registry.nameOf(first) + ".json"),
        new Gson().toJson(ofUser(entry(socket, NO_PROCESS))));
    world.mountinfo(writable(first));
    // It is no mount, so that unmounting fails.
    assertThat(world.execute("umount", "a")).isEqualTo(ExitStatus.FAILED);
    assertThat(world.errors()).doesNotContain("--no-drain");
  }

  /** A daemon without a successor. */
  private static DaemonRecord ofUser(DaemonRecord entry) {
    return new DaemonRecord(
        entry.mountpoint(),
        entry.source(),
        entry.pid(),
        entry.socket(),
        entry.logFile(),
        entry.device(),
        false,
        null,
        false);
  }

  private CompletableFuture<Void> publishSoon(Registration place) {
    return CompletableFuture.runAsync(
        () -> {
          try {
            Thread.sleep(300);
            place.publish(entry(place.socket(), SELF));
          } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
          }
        });
  }

  @Test
  void umount_ofAWritableMountWhoseNextDaemonStarts_waitsForIt() throws Exception {
    world.mountinfo(writable(first));
    try (Registration place = Objects.requireNonNull(registry.register(first));
        ControlServer server = ControlServer.start(place.socket(), new Requests())) {
      saved = place;
      CompletableFuture<Void> published = publishSoon(place);
      assertThat(world.execute("umount", "a")).as(world.errors()).isZero();
      published.get();
      assertThat(unmounts).containsExactly("purge=false");
    }
  }

  @Test
  void umount_whoseDaemonIsReplacedDuringTheDrain_isAskedOfTheNextOne() throws Exception {
    world.mountinfo(writable(first));
    drains = new Drains(outputs(() -> {}), List::of);
    try (Registration place = Objects.requireNonNull(registry.register(first));
        ControlServer server = ControlServer.start(place.socket(), new Requests())) {
      place.publish(entry(temporary.resolve("old.sock"), NO_PROCESS));
      saved = place;
      CompletableFuture<Void> replaced = publishSoon(place);
      assertThat(world.execute("umount", "a")).as(world.errors()).isZero();
      replaced.get();
      assertThat(unmounts).containsExactly("purge=false");
    }
  }

  @Test
  void umount_ofAMountThatAnotherReplacesDuringTheDrain_leavesTheOther() throws Exception {
    world.mountinfo(writable(first));
    String other = writable(first).replace("0:30", "0:31");
    drains = new Drains(outputs(() -> world.mountinfo(other)), List::of);
    try (Registration place = Objects.requireNonNull(registry.register(first));
        ControlServer server = serve(place)) {
      assertThat(world.execute("umount", "a")).isEqualTo(ExitStatus.NOT_MOUNTED);
      assertThat(world.errors()).contains("a: unmounted meanwhile");
      assertThat(unmounts).isEmpty();
    }
  }

  @Test
  void umount_atThePlaceOfTheRecordButOfAnotherSession_isRefusedByTheDaemon() throws Exception {
    world.mountinfo(line(first, "/source", "0:31"));
    try (Registration place = Objects.requireNonNull(registry.register(first));
        ControlServer server = serve(place)) {
      assertThat(world.execute("umount", "a")).isEqualTo(ExitStatus.FAILED);
      assertThat(world.errors()).contains("a: 0:31: not a session of this daemon, or no longer");
      assertThat(unmounts).isEmpty();
    }
  }

  @ParameterizedTest
  @CsvSource({"false, --grace=1s", "true, --grace=1s", "true, '--no-drain --lazy'"})
  void umount_whoseDaemonLeavesChanges_isDoneInPart(boolean isLeft, String options)
      throws Exception {
    world.mountinfo(writable(first));
    drains = new Drains(outputs(() -> {}), List::of);
    try (Registration place = Objects.requireNonNull(registry.register(first));
        ControlServer server = serve(place)) {
      saved = isLeft ? null : place;
      List<String> command = new ArrayList<>(List.of("umount", "a"));
      command.addAll(1, List.of(options.split(" ")));
      assertThat(world.execute(command.toArray(String[]::new)))
          .isEqualTo(isLeft ? ExitStatus.PARTLY : ExitStatus.DONE);
      assertThat(world.errors())
          .isEqualTo(
              isLeft
                  ? "pmfs: "
                      + first
                      + ": changes that were made after the drain may not be at the source yet;"
                      + " they are kept for the next mount or pmfs drain --state (pmfs cache shows"
                      + " the directory)\n"
                  : "");
      assertThat(unmounts).hasSize(1);
    }
  }
}
