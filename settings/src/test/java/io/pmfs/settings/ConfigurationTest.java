package io.pmfs.settings;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.places.Capacity;
import io.pmfs.places.TierKind;
import io.pmfs.places.TierSpec;
import io.pmfs.stage.formats.Compression;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class ConfigurationTest {
  @TempDir private Path temporary;
  private TestMachine world;

  @BeforeEach
  void makeWorld() {
    world = new TestMachine(temporary);
  }

  /** Every subset of the five places that can set a value; the strongest wins. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
  void resolve_valueInSeveralPlaces_takesTheStrongest(int places) throws Exception {
    boolean commandLine = (places & 1) != 0;
    boolean environment = (places & 2) != 0;
    boolean section = (places & 4) != 0;
    boolean common = (places & 8) != 0;
    if (environment) {
      world.environment.put("PMFS_FETCH_THREADS", "22");
    }
    Path file =
        writeFile(
            (common ? "fetch-threads = 44\n" : "\n")
                + "[mount.'%s']\n".formatted(world.directory.resolve("mnt"))
                + (section ? "fetch-threads = 33\n" : ""));
    Configuration configuration =
        world.configuration(
            commandLine ? Map.of(MountOption.FETCH_THREADS, List.of("11")) : Map.of(),
            file.toString());

    Setting setting = configuration.settings().get(MountOption.FETCH_THREADS);

    Setting expected =
        commandLine
            ? Setting.of("11", "command line")
            : environment
                ? Setting.of("22", "environment PMFS_FETCH_THREADS")
                : section
                    ? Setting.of(
                        "33", "%s:3 [mount.\"%s\"]".formatted(file, world.directory.resolve("mnt")))
                    : common ? Setting.of("44", file + ":1") : Setting.of("4", "default");
    assertThat(setting).isEqualTo(expected);
  }

  @Test
  void resolve_files_areLookedForInOrder() throws Exception {
    world.write("etc/pmfs/pmfs.toml", "log-level = 'error'");
    assertThat(logLevel(null)).isEqualTo("error");

    Path home = world.makeDirectory("home/.config/pmfs").resolve("pmfs.toml");
    Files.writeString(home, "log-level = 'warn'");
    assertThat(logLevel(null)).isEqualTo("warn");

    Path xdg = world.makeDirectory("xdg/pmfs").resolve("pmfs.toml");
    Files.writeString(xdg, "log-level = 'debug'");
    world.environment.put("XDG_CONFIG_HOME", world.directory.resolve("xdg").toString());
    assertThat(logLevel(null)).isEqualTo("debug");

    Path named = world.directory.resolve("named.toml");
    Files.writeString(named, "log-level = 'trace'");
    world.environment.put("PMFS_CONFIG", named.toString());
    assertThat(logLevel(null)).isEqualTo("trace");

    assertThat(logLevel(writeFile("log-level = 'info'").toString())).isEqualTo("info");
  }

  private String logLevel(@Nullable String file) throws MountFailure {
    return world
        .configuration(Map.of(), file)
        .toSettings(world.surroundings())
        .observation()
        .logLevel();
  }

  @Test
  void resolve_mountpointAlone_takesSourceFromSection() throws Exception {
    Path source = world.makeDirectory("from-file");
    Path mountpoint = world.makeDirectory("mnt");
    Path file = writeFile("[mount.'%s']\nsource = '%s'\n".formatted(mountpoint, source));

    MountSettings settings =
        Configuration.resolve(
                new Configuration.Request(Map.of(), file.toString(), null, "mnt"),
                world.surroundings())
            .toSettings(world.surroundings());

    assertThat(settings.source().path()).isEqualTo(source);
    assertThat(settings.mountpoint()).isEqualTo(mountpoint);
  }

  @Test
  void resolve_mountpointThroughSymbolicLink_findsItsSection() throws Exception {
    Path mountpoint = world.makeDirectory("mnt");
    Files.createSymbolicLink(world.directory.resolve("link"), mountpoint);
    Path file = writeFile("[mount.'%s']\nsource = '/'\n".formatted(mountpoint));

    Configuration configuration =
        Configuration.resolve(
            new Configuration.Request(Map.of(), file.toString(), null, "link"),
            world.surroundings());

    assertThat(configuration.settings()).containsKey(MountOption.SOURCE);
    assertThat(configuration.mountpoint()).isEqualTo(mountpoint);
  }

  /** The mount of a session that an older pmfs started, even if other mounts now cover it. */
  @Test
  void withSourceOf_theSessionsMount_isNotWhatLiesOnItsPathNow() throws Exception {
    Configuration configuration = world.configuration(Map.of(), null);
    Path mountpoint = world.directory.resolve("mnt");
    world.mountinfo(
        TestMachine.line(mountpoint, "fuse.pmfs", "/ours").replace("0:30", "0:29"),
        TestMachine.line(mountpoint, "fuse.pmfs", "/theirs"));
    MountTable mounts = world.surroundings().mounts();

    assertThat(sourceOf(configuration.withSourceOf(mounts, "0:29"))).isEqualTo("/ours");
    assertThat(sourceOf(configuration.withSourceOf(mounts, "0:28")))
        .isEqualTo(sourceOf(configuration));
    assertThat(sourceOf(configuration.withSourceOf(mounts, null))).isEqualTo("/theirs");
  }

  private static String sourceOf(Configuration configuration) {
    return Objects.requireNonNull(configuration.settings().get(MountOption.SOURCE)).values().get(0);
  }

  @Test
  void toSettings_noSourceAnywhere_saysHowToGiveOne() throws Exception {
    Configuration configuration =
        Configuration.resolve(
            new Configuration.Request(Map.of(), null, null, "mnt"), world.surroundings());

    assertThatThrownBy(() -> configuration.toSettings(world.surroundings()))
        .hasMessageContaining("no source");
  }

  @Test
  void toSettings_nothingConfigured_isTheEmbeddedDefault() throws Exception {
    MountSettings settings = world.settings(Map.of());

    assertThat(settings)
        .isEqualTo(
            new MountSettings(
                world.directory.resolve("mnt"),
                new SourceSettings(world.directory.resolve("src"), "auto", false, 8, null),
                new CopySettings(
                    List.of(
                        new TierSpec(
                            TierKind.SSD, world.directory.resolve("cache"), Capacity.WHOLE_DISK)),
                    Capacity.ofPercent(10),
                    false,
                    Compression.NONE,
                    "none",
                    4,
                    64 << 20),
                null,
                new MetadataSettings(world.directory.resolve("cache/state"), 64 << 20),
                new BridgeSettings(
                    "auto", "auto", false, null, false, Duration.ZERO, Duration.ofSeconds(30)),
                null,
                new ObservationSettings(null, null, "info", null, Duration.ofSeconds(10))));
  }

  @ParameterizedTest
  @CsvSource({"off,0", "0,0", "0s,0", "1500ms,1500", "2m,120000"})
  void toSettings_slowRequests_isATimeOrOff(String text, long millis) throws Exception {
    world.environment.put("PMFS_SLOW_REQUESTS", text);

    assertThat(world.settings(Map.of()).observation().slowRequests())
        .isEqualTo(Duration.ofMillis(millis));
  }

  @Test
  void toSettings_accessLog_isRelativeToWhereItIsGiven() throws Exception {
    world.environment.put("PMFS_ACCESS_LOG", "logs/access");

    assertThat(world.settings(Map.of()).observation().accessLog())
        .isEqualTo(world.directory.resolve("logs/access"));
  }

  @Test
  void toSettings_tiersInEnvironment_areSplit() throws Exception {
    world.environment.put("PMFS_TIER", " pm:/p:1G,ssd:/s  ssd:/t ");

    assertThat(world.settings(Map.of()).copies().tiers())
        .extracting(TierSpec::toString)
        .containsExactly("pm:/p:1.0 GiB", "ssd:/s", "ssd:/t");
  }

  @Test
  void toSettings_stateDirectory_liesWithTheLastLocalTier() throws Exception {
    world.mountinfo(TestMachine.line(Path.of("/net"), "nfs4", "srv:/"));

    MountSettings settings =
        world.settings(Map.of(MountOption.TIER, List.of("pm:/p", "ssd:/s", "ssd:/net/t")));

    assertThat(settings.metadata().stateDirectory()).isEqualTo(Path.of("/s/state"));
  }

  @Test
  void toSettings_allTiersOnTheNetwork_hasNoStateDirectory() throws Exception {
    world.mountinfo(TestMachine.line(Path.of("/net"), "lustre", "mds:/"));

    assertThat(
            world
                .settings(Map.of(MountOption.TIER, List.of("ssd:/net/t")))
                .metadata()
                .stateDirectory())
        .isNull();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "FETCH_THREADS    | 0       | --fetch-threads: '0' is not a number from 1 to 256",
        "FETCH_THREADS    | 257     | --fetch-threads: '257' is not a number from 1 to 256",
        "METADATA_THREADS | many    | --metadata-threads: 'many' is not a number from 1 to 256",
        "BUFFER_MEMORY    | 7MiB    | --buffer-memory: '7MiB' is too small; give at least 8MiB",
        "METADATA_MEMORY  | 1M      | --metadata-memory: '1M' is too small; give at least 16MiB",
        "EVICTION         | fifo    | --eviction: 'fifo' is not known; choose one of none, lru",
        "METRICS          | :9464   | --metrics: ':9464' is not an address; write it as 9464,"
            + " 0.0.0.0:9464, host:9464 or [::1]:9464; port 0 picks any free port",
        "METRICS          | h:65536 | --metrics: 'h:65536' is not an address; write it as 9464,"
            + " 0.0.0.0:9464, host:9464 or [::1]:9464; port 0 picks any free port",
        "SLOW_REQUESTS    | never   | --slow-requests: 'never' is not a duration; write it as 500ms,"
            + " 30s, 2m or 1h",
        "READY_TIMEOUT    | 0s      | --ready-timeout: '0s': a duration must be longer than zero",
        "LOG_LEVEL        | loud    | --log-level: 'loud' is not known; choose one of error",
        "KEEP_FREE        | 5x      | --keep-free: '5x' is not a size",
        "TIER             | hdd:/a  | --tier: 'hdd:/a': there is no tier kind 'hdd'",
        "TIER             | ssd:/a ssd:/b/../a  | --tier ssd:/b/../a: this directory is already a"
            + " tier",
      })
  void toSettings_badValue_namesTheOption(String name, String values, String message) {
    MountOption<?> option = TestMachine.option(name);
    assertThatThrownBy(() -> world.settings(Map.of(option, List.of(values.split(" ", -1)))))
        .isInstanceOf(MountFailure.class)
        .hasMessageStartingWith(message);
  }

  @Test
  void toSettings_badValueInEnvironment_namesTheVariable() {
    world.environment.put("PMFS_ALLOW_OTHER", "maybe");

    assertThatThrownBy(() -> world.settings(Map.of()))
        .hasMessage(
            "--allow-other (from environment PMFS_ALLOW_OTHER): 'maybe' is neither true nor false");
  }

  @Test
  void suspectVariables_mistyped_areNamedAndOthersLeftAlone() {
    world.environment.put("PMFS_TEIR", "ssd:/a");
    world.environment.put("PMFS_HEAP", "1g");
    world.environment.put("PMFS_JAVA", "java");

    assertThat(Configuration.suspectVariables(world.surroundings()))
        .containsExactlyInAnyOrder("PMFS_TEIR: unknown variable, ignored; did you mean PMFS_TIER?");
  }

  private Path writeFile(String text) throws Exception {
    return Files.writeString(world.directory.resolve("pmfs.toml"), text, UTF_8);
  }

  private Path linkOf(String owner) throws Exception {
    Path directory = world.makeDirectory("data");
    Path link = Files.createSymbolicLink(world.directory.resolve("link"), directory);
    Process chown = new ProcessBuilder("chown", "-h", owner, link.toString()).start();
    assumeTrue(chown.waitFor() == 0, "only root can give links to others");
    return link;
  }

  private OptionValues ofSource(Path source, boolean isForOthers) {
    Map<MountOption<?>, Setting> settings =
        Map.of(
            MountOption.SOURCE, Setting.of(source.toString(), "a test"),
            MountOption.ALLOW_OTHER, Setting.of(Boolean.toString(isForOthers), "a test"));
    return new OptionValues(settings, world.surroundings());
  }

  @ParameterizedTest
  @CsvSource({"0, true", "1234, false"})
  void source_throughALinkOfAnotherUser_isRefusedIfOthersMayEnter(String owner, boolean isTaken)
      throws Exception {
    Path link = linkOf(owner);
    Path below = Files.createDirectories(world.directory.resolve("data/a/b"));
    Files.createSymbolicLink(below.resolve("up"), Path.of("../../a"));
    OptionValues values = ofSource(link.resolve("a/b/up/b"), true);

    if (isTaken) {
      assertThat(values.sourcePlace()).isEqualTo(below);
    } else {
      assertThatThrownBy(values::sourcePlace)
          .hasMessageContaining(link + " belongs to user 1234")
          .hasMessageContaining("name the directory itself: " + world.directory.resolve("data"));
    }
  }

  @Test
  void source_throughALinkOfAnotherUser_isTakenIfNobodyElseMayEnter() throws Exception {
    world.uid = 4321;
    OptionValues values = ofSource(linkOf("1234"), false);

    assertThat(values.sourcePlace()).isEqualTo(world.directory.resolve("data"));
  }
}
