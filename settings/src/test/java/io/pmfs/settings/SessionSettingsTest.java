package io.pmfs.settings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.pmfs.cluster.members.ClusterSecret;
import io.pmfs.places.Capacity;
import io.pmfs.places.SourceIdentity;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierSpec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class SessionSettingsTest {
  private static final SourceIdentity SOURCE =
      new SourceIdentity(SourceIdentity.Form.DIRECTORY, "inode 7", null);

  private TestMachine world;
  private Path file;
  private final Map<MountOption<?>, List<String>> options = new TreeMap<>();

  @SuppressWarnings("NullAway.Init")
  SessionSettingsTest() {}

  @BeforeEach
  void makeWorld(@TempDir Path directory) {
    world = new TestMachine(directory);
    file = world.directory.resolve("session.settings");
    options.put(MountOption.LOG_FILE, List.of("logs/daemon.log"));
  }

  /** Starts a session and writes its file. */
  private MountSettings begin() throws Exception {
    Configuration configuration = world.configuration(options, null);
    MountSettings settings = configuration.toSettings(world.surroundings());
    Path log = Objects.requireNonNull(settings.observation().logFile());
    SessionSettings.begin(configuration, settings, log, false).of(SOURCE).save(file);
    return settings;
  }

  /** Resumes it as a daemon in another directory and with another environment. */
  private MountSettings resume() throws Exception {
    Surroundings others =
        new Surroundings(
            Map.of("PMFS_KEEP_FREE", "99%", "PMFS_EVICTION", "lru", "HOME", "/nowhere"),
            Path.of("/"),
            world.uid,
            "ada",
            world.root);
    return SessionSettings.load(file).toSettings(others);
  }

  private void edit(java.util.function.Consumer<JsonObject> change) throws IOException {
    JsonObject object = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
    change.accept(object);
    Files.writeString(file, object.toString());
  }

  @Test
  void toSettings_elsewhere_areThoseThatItBeganWith() throws Exception {
    options.put(MountOption.TIER, List.of("pm:fast:12.5%", "ssd:a:b/c:200G:zstd:5", "ssd:~/cache"));
    options.put(MountOption.STATE_DIR, List.of("state"));
    options.put(MountOption.ACCESS_LOG, List.of("logs/access.log"));
    options.put(MountOption.KEEP_FREE, List.of("3%"));
    options.put(MountOption.SLOW_REQUESTS, List.of("off"));
    world.environment.put("PMFS_EVICTION", "none");
    MountSettings began = begin();
    assertThat(resume()).isEqualTo(began);
  }

  @Test
  void toSettings_tierOfTheMachinesChoice_isTheSameOnAnotherMachine() throws Exception {
    MountSettings began = begin();
    world.environment.clear();
    assertThat(resume()).isEqualTo(began);
  }

  @Test
  void toSettings_linksThatMoved_areNotFollowed() throws Exception {
    Path link = world.directory.resolve("link");
    Files.createSymbolicLink(link, world.makeDirectory("first"));
    options.put(MountOption.TIER, List.of("ssd:" + link.resolve("tier")));
    options.put(MountOption.STATE_DIR, List.of(link.resolve("state").toString()));
    MountSettings began = begin();
    Path place = began.copies().tiers().get(0).path();
    assertThat(place).isEqualTo(world.directory.resolve("first/tier"));
    Files.delete(link);
    Files.createSymbolicLink(link, world.makeDirectory("second"));
    // The directory has become a link.
    Files.move(world.directory.resolve("first"), world.directory.resolve("third"));
    Files.createSymbolicLink(world.directory.resolve("first"), world.makeDirectory("second"));
    assertThat(resume()).isEqualTo(began);
  }

  @Test
  void toSettings_clustersFilesGone_areAsTheyWere() throws Exception {
    Path secret = world.directory.resolve("secret");
    Files.createFile(
        secret, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    Files.writeString(secret, "sixteen bytes or more\n");
    Path nodes = Files.writeString(world.directory.resolve("nodes"), "n1\nn2\n");
    options.put(MountOption.CLUSTER, List.of("train"));
    options.put(MountOption.NODES_FILE, List.of(nodes.toString()));
    options.put(MountOption.CLUSTER_SECRET_FILE, List.of(secret.toString()));
    byte[] key = ClusterSecret.ofFile(secret).requestKey().getEncoded();
    begin();
    Files.delete(secret);
    Files.delete(nodes);
    ClusterOptions cluster = Objects.requireNonNull(resume().cluster());
    assertThat(cluster.nodes()).containsExactly("n1", "n2");
    assertThat(Objects.requireNonNull(cluster.secret()).requestKey().getEncoded()).isEqualTo(key);
  }

  @Test
  void toSettings_clustersPathsElsewhere_areThoseThatItBeganWith() throws Exception {
    world.makeDirectory("shared");
    options.put(MountOption.CLUSTER, List.of("train"));
    options.put(MountOption.CLUSTER_DIR, List.of("shared"));
    options.put(MountOption.CLUSTER_TLS, List.of("one.pem,key.pem,all.pem"));
    ClusterOptions began = Objects.requireNonNull(begin().cluster());
    ClusterOptions cluster = Objects.requireNonNull(resume().cluster());
    assertThat(cluster.directory()).isEqualTo(world.directory.resolve("shared"));
    assertThat(cluster.tls())
        .isEqualTo(began.tls())
        .startsWith(world.directory.resolve("one.pem"))
        .hasSize(3);
  }

  @Test
  void toSettings_nodesOfAJobThatIsNotKnownAnyMore_areAsTheyWere() throws Exception {
    options.put(MountOption.CLUSTER, List.of("train"));
    world.environment.put(ClusterParser.SLURM_NODES, "n[01-03]");
    world.environment.put(ClusterParser.SECRET, "sixteen bytes or more");
    begin();
    ClusterOptions cluster = Objects.requireNonNull(resume().cluster());
    assertThat(cluster.nodes()).containsExactly("n01", "n02", "n03");
    assertThat(cluster.secret()).isNotNull();
  }

  @Test
  void configuration_ofASessionThatGoesOn_tellsWhereItCameFrom() throws Exception {
    world.environment.put("PMFS_EVICTION", "lru");
    Configuration configuration = world.configuration(options, null);
    begin();
    SessionSettings session = SessionSettings.load(file);
    assertThat(session.configuration().toJson()).isEqualTo(configuration.toJson());
    assertThat(session.source()).isEqualTo(SOURCE);
  }

  @Test
  void write_file_isForItsOwnerOnly() throws Exception {
    Files.writeString(file.resolveSibling("session.settings.new"), "left by a daemon that died");
    begin();
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
        .isEqualTo("rw-------");
  }

  @Test
  void read_optionsOfAnotherVersion_arePassedOverOrHaveTheirDefault() throws Exception {
    MountSettings began = begin();
    edit(
        object -> {
          JsonObject unknown = new JsonObject();
          unknown.addProperty("value", "x");
          unknown.addProperty("from", "default");
          object.getAsJsonObject("options").add("not-yet-known", unknown);
          object.getAsJsonObject("options").remove("fetch-threads");
        });
    assertThat(resume()).isEqualTo(began);
  }

  @Test
  void read_damagedOrOfAnotherFormat_isOneLine() throws Exception {
    begin();
    edit(object -> object.addProperty("format", 2));
    assertThatThrownBy(() -> SessionSettings.load(file)).isInstanceOf(IOException.class);
    Files.writeString(file, "{\"format\": 1, \"options\": [");
    assertThatThrownBy(() -> SessionSettings.load(file)).isInstanceOf(IOException.class);
    Files.writeString(file, "{\"format\": 1}");
    assertThatThrownBy(() -> SessionSettings.load(file)).isInstanceOf(IOException.class);
  }

  /** Recorded from pmfs 0.1.0: every later version must resume such a session. */
  @Test
  void read_fileOfAnEarlierVersion_isUnderstoodAndWrittenAgainAsItWas() throws Exception {
    Path recorded =
        Path.of(Objects.requireNonNull(getClass().getResource("session-format-1.json")).toURI());
    Files.copy(recorded, file);
    MountSettings settings = resume();
    assertThat(settings.source().path()).isEqualTo(Path.of("/lustre/imagenet"));
    assertThat(settings.source().nested()).isTrue();
    assertThat(settings.mountpoint()).isEqualTo(Path.of("/mnt/dataset"));
    assertThat(settings.copies().tiers())
        .extracting(TierSpec::exactText)
        .containsExactly("pm:/mnt/pmem0/pmfs:214748364800:zstd:5", "ssd:/local/pmfs:80.000000%");
    assertThat(settings.copies().keepFree()).isEqualTo(Capacity.parse("3%"));
    assertThat(settings.copies().eviction()).isEqualTo("lru");
    assertThat(settings.metadata().stateDirectory()).isEqualTo(Path.of("/local/pmfs/state"));
    assertThat(settings.observation().logFile()).isEqualTo(Path.of("/home/ada/logs/daemon.log"));
    assertThat(settings.observation().accessLog()).isEqualTo(Path.of("/home/ada/logs/access.log"));
    assertThat(settings.observation().slowRequests()).isZero();
    ClusterOptions cluster = Objects.requireNonNull(settings.cluster());
    assertThat(cluster.nodes()).containsExactly("node01", "node02", "node03");
    assertThat(cluster.tls()).startsWith(Path.of("/home/ada/node.pem")).hasSize(3);
    assertThat(cluster.secret()).isNotNull();

    SessionSettings.load(file).save(file);
    JsonObject before = JsonParser.parseString(Files.readString(recorded)).getAsJsonObject();
    JsonObject after = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
    // Options that are newer than the recorded file have their defaults.
    JsonObject options = after.getAsJsonObject("options");
    for (String key : List.of("writable", "drain-rate", "fsync", "source-patience", "linger")) {
      assertThat(options.remove(key).getAsJsonObject().get("from").getAsString())
          .isEqualTo("default");
    }
    assertThat(after).isEqualTo(before);
  }

  /** A daemon that takes over has another working directory and perhaps other files and links. */
  @Test
  void begin_optionsThatNamePaths_arePinned() throws Exception {
    Path secret = Files.writeString(world.directory.resolve("secret"), "sixteen bytes or more");
    Files.setPosixFilePermissions(secret, PosixFilePermissions.fromString("rw-------"));
    for (MountOption<?> option : MountOption.options()) {
      if (!option.pathsIn("x").isEmpty()) {
        world.environment.put(option.variable(), "secret");
      }
    }
    world.environment.put("PMFS_CLUSTER", "train");
    world.environment.put("PMFS_CLUSTER_TLS", "one.pem,key.pem,all.pem");
    world.environment.put("PMFS_TIER", "ssd:tier");
    options.clear();
    begin();
    assertThat(SessionSettings.load(file).pinned().keySet())
        .containsAll(MountOption.values().stream().filter(o -> !o.pathsIn("x").isEmpty()).toList());
  }
}
