package io.pmfs.daemon;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.daemon.control.ControlRequests;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownDaemon;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.mounts.Registration;
import io.pmfs.mounts.Registry;
import io.pmfs.settings.TestMachine;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Which daemon commands find while one daemon succeeds another at a mount point. */
@Timeout(120)
final class PresenceTest {
  private TestMachine world;
  private Registry registry;
  private Path mountpoint;
  private @Nullable Presence presence;
  private List<String> further = List.of();
  private Runnable atEntry = () -> {};

  @SuppressWarnings("NullAway.Init")
  PresenceTest() {}

  @BeforeEach
  void makeWorld(@TempDir Path directory) throws Exception {
    world = new TestMachine(directory);
    registry = world.registry();
    mountpoint = world.makeDirectory("mnt");
  }

  @AfterEach
  void close() {
    if (presence != null) {
      presence.close();
    }
  }

  /** These tests send no requests. */
  private static final class SilentRequests implements ControlRequests {
    @Override
    public StatusReport status() {
      throw new UnsupportedOperationException();
    }

    @Override
    public @Nullable NodesReport nodes() {
      return null;
    }

    @Override
    public KeptTasks tasks() {
      throw new UnsupportedOperationException();
    }

    @Override
    public void upgrade() {
      throw new UnsupportedOperationException();
    }

    @Override
    public void unmount(boolean lazy, boolean purge, boolean abandon) {
      throw new UnsupportedOperationException();
    }
  }

  private Presence presence(@Nullable Registration taken) {
    Presence made = new Presence(mountpoint, registry, taken, new SilentRequests(), this::entry);
    presence = made;
    return made;
  }

  private DaemonRecord entry() {
    atEntry.run();
    DaemonRecord entry =
        DaemonRecord.of(mountpoint.toString(), "/s", 7, "", "/log").withDevice("0:40");
    return further.isEmpty() ? entry : entry.withSessions(further);
  }

  private DaemonRecord entry(Path socket) {
    return entry().withSocket(socket, false);
  }

  private Registration place() throws MountFailure {
    return Objects.requireNonNull(registry.register(mountpoint));
  }

  private void awaitDetached(Presence detached) throws MountFailure {
    long deadline = System.nanoTime() + 60_000_000_000L;
    while (registry.find(mountpoint) != null && System.nanoTime() < deadline) {
      detached.update(false);
    }
  }

  @Test
  void appear_atAPlace_isFound() throws Exception {
    presence(place()).appear();

    assertThat(registry.find(mountpoint)).isEqualTo(entry(registry.socketOf(mountpoint)));
  }

  @Test
  void update_justDetached_keepsThePlace() throws Exception {
    Presence detached = presence(place());
    detached.appear();

    detached.update(false);
    detached.update(false);

    assertThat(registry.find(mountpoint)).isNotNull();
  }

  @Test
  void update_detachedForLong_givesThePlaceToOthers() throws Exception {
    Presence detached = presence(place());
    detached.appear();

    awaitDetached(detached);

    try (Registration next = place()) {
      next.publish(entry(next.socket()));
      detached.update(false);
      detached.close();
      assertThat(registry.find(mountpoint)).as("the other's").isNotNull();
    }
  }

  /** The detached daemon stays in the list, beside the next mount, until it ends. */
  @Test
  void update_detachedForLong_isListedAsDetachedUntilItEnds() throws Exception {
    Presence detached = presence(place());
    detached.appear();

    awaitDetached(detached);

    assertThat(registry.detached())
        .singleElement()
        .satisfies(
            entry -> {
              assertThat(entry.mountpoint()).isEqualTo(mountpoint.toString());
              assertThat(entry.pid()).isEqualTo(7);
              assertThat(Path.of(entry.socket())).exists();
            });
    assertThat(registry.running()).isEmpty();
    try (Registration next = place()) {
      next.publish(entry(next.socket()));
      assertThat(registry.running()).hasSize(1);
      assertThat(registry.detached()).hasSize(1);
    }
    detached.close();
    assertThat(registry.detached()).isEmpty();
    assertThat(registry.known()).isEmpty();
  }

  /** Commands may look for the daemon by another mount point. */
  @Test
  void update_detachedForLong_isAlwaysListedWithASocketThatListens() throws Exception {
    Presence detached = presence(place());
    detached.appear();
    List<String> silent = new ArrayList<>();
    atEntry =
        () -> {
          try {
            List<KnownDaemon> known = registry.known();
            if (known.isEmpty()) {
              silent.add("no record");
            }
            for (KnownDaemon one : known) {
              try (SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX)) {
                channel.connect(UnixDomainSocketAddress.of(one.daemon().socket()));
              }
            }
          } catch (IOException | MountFailure e) {
            silent.add(e.toString());
          }
        };

    awaitDetached(detached);

    assertThat(silent).isEmpty();
  }

  /** Another mount temporarily covers this one. */
  @Test
  void update_backAtItsMountpoint_hasItsPlaceAgain() throws Exception {
    Presence covered = presence(place());
    covered.appear();
    awaitDetached(covered);

    covered.update(true);

    assertThat(registry.find(mountpoint)).isEqualTo(entry(registry.socketOf(mountpoint)));
    assertThat(registry.detached()).isEmpty();
  }

  @Test
  void update_placeOfAnother_isTakenWhenItIsFree() throws Exception {
    Registration other = place();
    Presence successor = presence(null);
    successor.update(true);
    assertThat(registry.find(mountpoint)).isNull();

    other.close();
    successor.update(true);

    assertThat(registry.find(mountpoint)).isNotNull();
  }

  @Test
  void markSaved_detachedForLong_isFoundByItsRecord() throws Exception {
    Presence detached = presence(place());
    detached.appear();
    awaitDetached(detached);
    DaemonRecord ended =
        DaemonRecord.of(mountpoint.toString(), "/s", ProcessHandle.current().pid(), "", "/log")
            .withDevice("0:40")
            .withSocket(Path.of(registry.detached().get(0).socket()), true);
    KnownMounts known = KnownMounts.open(world.surroundings());
    assertThat(known.isSaved(ended)).isFalse();

    detached.markSaved();
    detached.close();

    assertThat(known.isSaved(ended)).isTrue();
  }

  private static MountTable.Mount mount(String device) {
    return new MountTable.Mount(Path.of("/mnt/x"), "fuse.pmfs", "/s", "ro", device, true, "7");
  }

  @Test
  void refresh_afterAFurtherMount_publishesIt() throws Exception {
    Presence shared = presence(place());
    shared.refresh();
    shared.appear();
    further = List.of("0:40", "0:41");

    shared.refresh();

    assertThat(Objects.requireNonNull(registry.ofMount(mount("0:41"))).daemon().socket())
        .isEqualTo(registry.socketOf(mountpoint).toString());
    further = List.of("0:41");
    shared.update(false);
    assertThat(registry.ofMount(mount("0:40"))).isNull();
    shared.close();
    shared.refresh();
    assertThat(registry.known()).isEmpty();
  }
}
