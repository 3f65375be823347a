package io.pmfs.daemon;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.Registration;
import io.pmfs.posix.Await;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.TestMachine;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A mount on a mount point whose last daemon is ending. */
@Timeout(120)
final class PreviousMountTest {
  private TestRun world;
  private MountSettings settings;
  private Path mountpoint;
  private Registration predecessor;

  @SuppressWarnings("NullAway.Init")
  PreviousMountTest() {}

  @BeforeEach
  void takePlace(@TempDir Path directory) throws Exception {
    world = new TestRun(directory);
    settings = world.settings(Map.of());
    mountpoint = settings.mountpoint();
    predecessor = Objects.requireNonNull(world.registry().register(mountpoint));
  }

  private void publish(String device) throws Exception {
    predecessor.publish(
        DaemonRecord.of(mountpoint.toString(), "/before", 4711, "/socket", "/the.log")
            .withDevice(device));
  }

  private CompletableFuture<Registration> replace(Duration patience) throws MountFailure {
    PreviousMount previous =
        new PreviousMount(settings, world.registry(), world.invocation(), patience);
    return CompletableFuture.supplyAsync(
        () -> {
          try {
            return previous.replace();
          } catch (MountFailure e) {
            throw new IllegalStateException(e.line(), e);
          }
        });
  }

  @Test
  void replace_predecessorThatEnds_waitsForItAndSaysSo() throws Exception {
    publish("0:40");
    CompletableFuture<Registration> taken = replace(Duration.ofSeconds(60));
    Await.until("it says what it waits for", () -> !world.errors().isEmpty());
    assertThat(world.errors())
        .isEqualTo(
            "pmfs: %s: waiting for pmfs (pid 4711), which is stopping there, 60 s at most\n"
                .formatted(mountpoint));
    assertThat(taken).isNotDone();

    predecessor.close();

    try (Registration registration = taken.get(60, TimeUnit.SECONDS)) {
      assertThat(registration).isNotNull();
    }
  }

  @Test
  void replace_predecessorThatDoesNotEnd_saysWhichAndFails() throws Exception {
    publish("0:40");

    assertThatThrownBy(() -> replace(Duration.ofMillis(300)).get(60, TimeUnit.SECONDS))
        .hasRootCauseMessage(
            mountpoint
                + ": pmfs (pid 4711) is stopping there and has not ended after 0 s; see"
                + " /the.log, or try again");
  }

  @Test
  void replace_anotherThatStarts_isWaitedForToo() throws Exception {
    assertThatThrownBy(() -> replace(Duration.ofMillis(300)).get(60, TimeUnit.SECONDS))
        .hasRootCauseMessage(
            mountpoint
                + ": another pmfs is starting or stopping there and has not ended after 0 s; see"
                + " pmfs status, or try again");
  }

  @Test
  void replace_predecessorThatServes_isRefusedAtOnce() throws Exception {
    publish("0:30"); // as TestRun.line has it
    world.mountinfo(TestRun.line(mountpoint, "fuse.pmfs", "/before"));

    assertThatThrownBy(() -> replace(Duration.ofHours(1)).get(60, TimeUnit.SECONDS))
        .rootCause()
        .hasMessageContaining("already mounted: pid 4711 serves /before there");
  }

  private final MountFailure inUse = new MountFailure(ExitStatus.IN_USE, "state: in use");

  private PreviousMount previous(Duration patience) throws MountFailure {
    return new PreviousMount(settings, world.registry(), world.invocation(), patience);
  }

  @Test
  void await_copiesOfADaemonThatEnds_waits() throws Exception {
    AtomicInteger refusals = new AtomicInteger(3);

    String opened =
        previous(Duration.ofSeconds(60))
            .await(
                () -> {
                  if (refusals.getAndDecrement() > 0) {
                    throw inUse;
                  }
                  return "opened";
                });

    assertThat(opened).isEqualTo("opened");
  }

  /** The user's mount uses other copies. */
  @Test
  void await_whileAnotherDatasetIsServed_waitsAllTheSame() throws Exception {
    Path elsewhere = world.makeDirectory("elsewhere");
    try (Registration serving = Objects.requireNonNull(world.registry().register(elsewhere))) {
      serving.publish(
          DaemonRecord.of(elsewhere.toString(), "/another", 1, "/s", "/l").withDevice("0:30"));
      world.mountinfo(TestMachine.line(elsewhere, "fuse.pmfs", "/another"));

      await_copiesOfADaemonThatEnds_waits();
    }
  }

  @Test
  void await_copiesOfADaemonThatDoesNotEnd_failsInTheEnd() throws Exception {
    PreviousMount previous = previous(Duration.ofMillis(300));

    assertThatThrownBy(
            () ->
                previous.await(
                    () -> {
                      throw inUse;
                    }))
        .isSameAs(inUse);
  }

  @Test
  void await_copiesOfAMountThatServes_failsAtOnce() throws Exception {
    Path elsewhere = world.makeDirectory("elsewhere");
    try (Registration serving = Objects.requireNonNull(world.registry().register(elsewhere))) {
      serving.publish(
          DaemonRecord.of(elsewhere.toString(), settings.source().path().toString(), 1, "/s", "/l")
              .withDevice("0:30"));
      world.mountinfo(TestRun.line(elsewhere, "fuse.pmfs", settings.source().path().toString()));
      Files.createDirectories(world.root.resolve("proc/1"));
      AtomicInteger tries = new AtomicInteger();

      assertThatThrownBy(
              () ->
                  previous(Duration.ofHours(1))
                      .await(
                          () -> {
                            tries.incrementAndGet();
                            throw inUse;
                          }))
          .isInstanceOfSatisfying(
              MountFailure.class, e -> assertThat(e.exitStatus()).isEqualTo(ExitStatus.IN_USE))
          .hasMessage(
              "%s: already mounted on %s by user %s (pid 1), which holds its copies and state; use that mount, or choose another --tier and --state-dir"
                  .formatted(
                      settings.source().path(),
                      elsewhere,
                      Files.getOwner(world.root.resolve("proc/1")).getName()));
      assertThat(tries).hasValue(1);
    }
  }

  @Test
  void await_copiesOfADetachedDaemon_namesIt() throws Exception {
    Path elsewhere = world.makeDirectory("elsewhere");
    try (Registration serving = Objects.requireNonNull(world.registry().register(elsewhere))) {
      serving.publish(
          DaemonRecord.of(elsewhere.toString(), settings.source().path().toString(), 1, "/s", "/l")
              .withDevice("0:30"));

      assertThatThrownBy(
              () ->
                  previous(Duration.ofMillis(300))
                      .await(
                          () -> {
                            throw inUse;
                          }))
          .hasMessageContaining(", detached from " + elsewhere + ", holds its copies and state");
    }
  }

  /** The mount there is not the ending daemon's: the device number differs. */
  @Test
  void replace_mountOfAnotherThanTheEndingDaemon_isNotTakenForItsOwn() throws Exception {
    publish("0:40");
    world.mountinfo(TestRun.line(mountpoint, "fuse.pmfs", "/theirs"));

    assertThatThrownBy(() -> replace(Duration.ofMillis(300)).get(60, TimeUnit.SECONDS))
        .rootCause()
        .hasMessageContaining("is stopping there");
  }
}
