package io.pmfs.daemon.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.fuse.ReadMode;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.places.SourceIdentity;
import io.pmfs.places.Surroundings;
import io.pmfs.settings.Configuration;
import io.pmfs.settings.SessionSettings;
import io.pmfs.settings.TestMachine;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class SupervisionTest {
  private static final FileTime LONG_AGO = FileTime.from(Instant.EPOCH);

  private TestMachine world;
  private Path file;

  @SuppressWarnings("NullAway.Init")
  SupervisionTest() {}

  @BeforeEach
  void makeWorld(@TempDir Path directory) throws Exception {
    world = new TestMachine(directory);
    file = Files.createFile(directory.resolve("session"));
    world.environment.put(Supervision.DESCRIPTOR, "3");
    world.environment.put(Supervision.FILE, file.toString());
  }

  private Supervision supervision() throws MountFailure {
    Surroundings surroundings =
        new Surroundings(world.environment, world.directory, world.uid, "tester", world.root);
    Supervision supervision = Supervision.of(surroundings);
    assertThat(supervision).isNotNull();
    return java.util.Objects.requireNonNull(supervision);
  }

  /** A death between emptying and writing the file would look like the end of the session. */
  @Test
  void begin_ofASessionThatGoesOn_doesNotWriteTheFile() throws Exception {
    Supervision first = supervision();
    assertThat(first.isResumed()).isFalse();
    first.begin(Path.of("/mnt"), ReadMode.PASSTHROUGH, Path.of("/log"));
    assertThat(file).hasContent("passthrough\n/log\n/mnt\n");
    Files.setLastModifiedTime(file, LONG_AGO);
    Supervision second = supervision();
    assertThat(second.resumedMode()).isEqualTo(ReadMode.PASSTHROUGH);
    second.begin(Path.of("/mnt"), ReadMode.PASSTHROUGH, Path.of("/log"));
    assertThat(Files.getLastModifiedTime(file)).isEqualTo(LONG_AGO);
  }

  @Test
  void begin_ofAnotherReadMode_isWhatTheNextDaemonFinds() throws Exception {
    Supervision first = supervision();
    first.begin(Path.of("/mnt\n"), ReadMode.AUTO, Path.of("/log"));
    first.begin(Path.of("/mnt\n"), ReadMode.PAGE_CACHE, Path.of("/log"));
    assertThat(file).hasContent("page-cache\n/log\n/mnt\n\n");
    assertThat(supervision().resumedMode()).isEqualTo(ReadMode.PAGE_CACHE);
  }

  @Test
  void settings_ofASession_goWithIt() throws Exception {
    Supervision first = supervision();
    assertThat(first.hasSettings()).isFalse();
    assertThat(first.settings()).isNull();
    Configuration configuration = world.configuration(Map.of(), null);
    SessionSettings settings =
        SessionSettings.begin(
                configuration,
                configuration.toSettings(world.surroundings()),
                Path.of("/log"),
                false)
            .of(new SourceIdentity(SourceIdentity.Form.DIRECTORY, "inode 7", null));
    first.keep(settings);
    assertThat(supervision().hasSettings()).as("before the session has begun").isFalse();
    first.begin(Path.of("/mnt"), ReadMode.PASSTHROUGH, Path.of("/log"));
    Supervision second = supervision();
    assertThat(second.hasSettings()).isTrue();
    assertThat(second.settings()).isEqualTo(settings);
    second.end();
    assertThat(file.resolveSibling("session.settings")).doesNotExist();
  }

  @Test
  void settings_thatAreDamaged_areTriedAgainLater() throws Exception {
    Files.writeString(file.resolveSibling("session.settings"), "{");
    supervision().begin(Path.of("/mnt"), ReadMode.PASSTHROUGH, Path.of("/log"));
    assertThatThrownBy(() -> supervision().settings())
        .isInstanceOfSatisfying(
            MountFailure.class, e -> assertThat(e.exitStatus()).isEqualTo(ExitStatus.UNAVAILABLE));
  }
}
