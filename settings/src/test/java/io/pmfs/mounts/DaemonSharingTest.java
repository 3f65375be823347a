package io.pmfs.mounts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.fuse.system.DirectoryStore;
import io.pmfs.machine.MountFailure;
import io.pmfs.mounts.DaemonSharing.Outcome;
import io.pmfs.places.SourceIdentity;
import io.pmfs.settings.Configuration;
import io.pmfs.settings.MountOption;
import io.pmfs.settings.SessionSettings;
import io.pmfs.settings.TestMachine;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class DaemonSharingTest {
  private static final Path FIRST = Path.of("/mnt/first");
  private static final Path SECOND = Path.of("/mnt/second");

  @TempDir private Path temporary;
  private TestMachine world;
  private final FakeDaemons daemons = new FakeDaemons();
  private final List<String> lines = new ArrayList<>();

  /** Daemons with answers chosen by the test. */
  private static final class FakeDaemons implements DaemonSharing.Daemons {
    final Map<String, SessionSettings> settings = new HashMap<>();
    final Queue<Outcome> outcomes = new ArrayDeque<>();
    final List<String> asked = new ArrayList<>();

    @Override
    public @Nullable SessionSettings settingsOf(DaemonRecord daemon) {
      return settings.get(daemon.mountpoint());
    }

    @Override
    public Outcome join(DaemonRecord daemon) {
      asked.add(daemon.mountpoint());
      return Objects.requireNonNullElse(outcomes.poll(), Outcome.JOINED);
    }
  }

  /** Each holds a lock until it is closed, or collected. */
  private final List<Registration> registered = new ArrayList<>();

  @BeforeEach
  void makeWorld() {
    world = new TestMachine(temporary);
  }

  private SessionSettings session(String... options) throws MountFailure {
    Map<MountOption<?>, List<String>> given = new HashMap<>();
    for (String option : options) {
      String[] words = option.split("=", 2);
      MountOption.options().stream()
          .filter(one -> one.key().equals(words[0]))
          .forEach(one -> given.put(one, List.of(words[1])));
    }
    Configuration configuration = world.configuration(given, null);
    return SessionSettings.begin(
        configuration,
        configuration.toSettings(world.surroundings()),
        world.directory.resolve("log"),
        false);
  }

  /** A running daemon for each of these mount points. */
  private void serve(Path... mountpoints) throws Exception {
    String source = world.directory.resolve("src").toString();
    List<String> table = new ArrayList<>();
    for (int i = 0; i < mountpoints.length; i++) {
      table.add("2%d 1 0:3%d / %s ro - fuse.pmfs %s ro".formatted(i, i, mountpoints[i], source));
      Registration place = Objects.requireNonNull(world.registry().register(mountpoints[i]));
      registered.add(place);
      place.publish(
          DaemonRecord.of(
                  mountpoints[i].toString(),
                  source,
                  ProcessHandle.current().pid(),
                  "/socket",
                  "/log")
              .withDevice("0:3" + i));
    }
    world.mountinfo(table.toArray(String[]::new));
  }

  private boolean join(String... options) throws MountFailure {
    SessionSettings session = session(options);
    return new DaemonSharing(
            session,
            session.toSettings(world.surroundings()),
            world.registry(),
            world.surroundings(),
            true,
            lines::add)
        .join(daemons);
  }

  @Test
  void join_withoutADaemon_isFalse() throws Exception {
    assertThat(join()).isFalse();
    assertThat(daemons.asked).isEmpty();
  }

  @Test
  void join_ofSeveral_triesTheOneWithItsCopiesFirst() throws Exception {
    serve(FIRST, SECOND);
    daemons.settings.put(FIRST.toString(), session("tier=ssd:/elsewhere", "state-dir=/state"));
    daemons.settings.put(SECOND.toString(), session());
    daemons.outcomes.addAll(Arrays.asList(Outcome.IMPOSSIBLE, Outcome.IMPOSSIBLE));

    assertThat(join()).isFalse();

    assertThat(daemons.asked).containsExactly(SECOND.toString(), FIRST.toString());
  }

  @Test
  void join_givenAPlaceOfItsOwn_sharesNothing() throws Exception {
    serve(FIRST);
    daemons.settings.put(FIRST.toString(), session("tier=ssd:/elsewhere", "state-dir=/state"));

    assertThat(join("tier=ssd:/own", "state-dir=/own/state")).isFalse();

    assertThat(daemons.asked).isEmpty();
  }

  @Test
  void join_ofADaemonThatShowsSomethingElse_isRefused() throws Exception {
    serve(FIRST);
    daemons.settings.put(FIRST.toString(), session("nested=true"));

    assertThatThrownBy(this::join)
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("--nested is false here, and true for the mount on /mnt/first");
  }

  private SessionSettings report(SessionSettings session) throws Exception {
    String root;
    try (DirectoryStore source = new DirectoryStore(world.directory.resolve("src"))) {
      root = source.identity();
    }
    SourceIdentity identity = new SourceIdentity(SourceIdentity.Form.DIRECTORY, root, null);
    String report = session.of(identity).toReport().toString();
    return Objects.requireNonNull(SessionSettings.reported(report));
  }

  @Test
  void join_ofADaemonOfAReplacedDirectory_isRefused() throws Exception {
    serve(FIRST, SECOND);
    daemons.settings.put(FIRST.toString(), report(session()));
    daemons.settings.put(
        SECOND.toString(), report(session("tier=ssd:/elsewhere", "state-dir=/state")));
    assertThat(join()).isTrue();
    assertThat(daemons.asked).containsExactly(FIRST.toString());

    Files.move(world.directory.resolve("src"), world.directory.resolve("src.v1"));
    world.makeDirectory("src");

    assertThatThrownBy(this::join)
        .isInstanceOf(MountFailure.class)
        .hasMessageContaining("another directory than at the time of the mount on /mnt/first");
    assertThat(join("tier=ssd:/own", "state-dir=/own/state")).isFalse();
    assertThat(daemons.asked).hasSize(1);
  }

  @Test
  void join_afterTheSessionWasUnmounted_looksAgain() throws Exception {
    serve(FIRST);
    daemons.settings.put(FIRST.toString(), session("log-level=debug"));
    daemons.outcomes.addAll(List.of(Outcome.GONE, Outcome.SILENT));

    assertThat(join("log-level=info")).isTrue();

    assertThat(daemons.asked).hasSize(3);
    assertThat(lines)
        .singleElement()
        .asString()
        .endsWith("shares the daemon of /mnt/first; ignored here: --log-level");
  }
}
