package io.pmfs.settings;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.cluster.client.PeerTimeouts;
import io.pmfs.cluster.members.ClusterSecret;
import io.pmfs.machine.MountFailure;
import io.pmfs.stage.copies.RemoteCopies;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class ClusterParserTest {
  private static final String SECRET = "correct horse battery staple";

  @TempDir private Path temporary;
  private TestMachine world;
  private final Map<MountOption<?>, List<String>> options = new TreeMap<>();

  @BeforeEach
  void makeWorld() {
    world = new TestMachine(temporary);
    options.put(MountOption.CLUSTER, List.of("train"));
    world.environment.put("PMFS_CLUSTER_SECRET", SECRET);
  }

  private void give(MountOption<?> option, String value) {
    options.put(option, List.of(value));
  }

  private ClusterOptions cluster() throws MountFailure {
    return Objects.requireNonNull(world.settings(options).cluster());
  }

  private Path secretFile(String text, String mode) throws IOException {
    Path file = Files.writeString(temporary.resolve("secret"), text);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(mode));
    return file;
  }

  @Test
  void mount_withoutAName_isInNoCluster() throws Exception {
    options.clear();
    world.environment.put("PMFS_NODES", "a,b");

    assertThat(world.settings(options).cluster()).isNull();
  }

  @ParameterizedTest
  @CsvSource({
    "NODES, 'a,b'", "NODES_FILE, f", "CLUSTER_DIR, d", "CLUSTER_ADDRESS, 127.0.0.1",
    "CLUSTER_SECRET_FILE, f", "CLUSTER_TLS, 'a,b,c'", "REPLICAS, 2", "REMOTE_COPIES, keep",
    "PEER_TIMEOUTS, connect=1s"
  })
  void option_ofAClusterWithoutOne_saysWhatIsMissing(String name, String value) {
    MountOption<?> option = TestMachine.option(name);
    options.clear();
    give(option, value);

    assertThatThrownBy(() -> world.settings(options))
        .hasMessage(option.commandLineName() + ": needs --cluster NAME");
  }

  @Test
  void nodes_givenAsAList_areThose() throws Exception {
    give(MountOption.NODES, "node01, node02,10.0.0.3");

    ClusterOptions cluster = cluster();

    assertThat(cluster.name()).isEqualTo("train");
    assertThat(cluster.nodes()).containsExactly("node01", "node02", "10.0.0.3");
    assertThat(cluster.replicas()).isEqualTo(1);
    assertThat(cluster.remoteCopies()).isEqualTo(RemoteCopies.AUTO);
    assertThat(cluster.timeouts()).isEqualTo(PeerTimeouts.DEFAULTS);
    assertThat(cluster.tls()).isEmpty();
  }

  @Test
  void nodes_inBrackets_areAsInSlurm() throws Exception {
    give(MountOption.NODES, "gpu[08-10],login");

    assertThat(cluster().nodes()).containsExactly("gpu08", "gpu09", "gpu10", "login");
  }

  @Test
  void nodes_ofASlurmJob_areTheDefault() throws Exception {
    world.environment.put("SLURM_JOB_NODELIST", "gpu[1-2]");

    assertThat(cluster().nodes()).containsExactly("gpu1", "gpu2");

    give(MountOption.NODES, "other");
    assertThat(cluster().nodes()).containsExactly("other");
  }

  @Test
  void nodes_ofASlurmJobThatCannotBeRead_areAnError() {
    world.environment.put("SLURM_JOB_NODELIST", "gpu[1-");

    assertThatThrownBy(this::cluster).hasMessageStartingWith("SLURM_JOB_NODELIST: ");
  }

  @Test
  void nodes_fromAFile_areThose() throws Exception {
    Files.writeString(temporary.resolve("hosts"), "node01\n# a comment\n\nnode02\n");
    give(MountOption.NODES_FILE, temporary.resolve("hosts").toString());

    assertThat(cluster().nodes()).containsExactly("node01", "node02");
  }

  @Test
  void nodes_withADirectory_areNotNeeded() throws Exception {
    give(MountOption.CLUSTER_DIR, "shared");

    assertThat(cluster().nodes()).isEmpty();
    assertThat(cluster().directory()).isEqualTo(world.directory.resolve("shared"));
  }

  @Test
  void nodes_notGiven_saysHow() {
    assertThatThrownBy(this::cluster)
        .hasMessage(
            "--cluster: which nodes? give --nodes a,b,c, --nodes-file FILE or --cluster-dir DIR");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          CLUSTER             | a/b              | --cluster: 'a/b' is not a name of 1 to 64 letters
          CLUSTER             | ''               | --cluster: no value given
          NODES               | a,,b             | --nodes: node list: empty entry at character 3
          NODES               | a[              | --nodes: node list
          NODES_FILE          | /no/such         | --nodes-file: /no/such: node list: cannot be read
          REPLICAS            | 0                | --replicas: '0' is not a number from 1 to 16
          REPLICAS            | 17               | --replicas: '17' is not a number from 1 to 16
          REPLICAS            | all              | --replicas: 'all' is not a number from 1 to 16
          REMOTE_COPIES       | always           | --remote-copies: 'always' is not known; choose one of auto, keep, never
          PEER_TIMEOUTS       | 1s               | --peer-timeouts: '1s' is not a limit; write it as connect=1s
          PEER_TIMEOUTS       | connect=0s       | --peer-timeouts: 'connect=0s' is not between 1ms and 1h
          PEER_TIMEOUTS       | total=2h         | --peer-timeouts: 'total=2h' is not between 1ms and 1h
          PEER_TIMEOUTS       | stall=1s,stall=2s| --peer-timeouts: 'stall' is given twice
          PEER_TIMEOUTS       | stall=fast       | --peer-timeouts: 'fast'
          CLUSTER_TLS         | a,b              | --cluster-tls: 'a,b' is not three PEM files: CERTIFICATES,KEY,AUTHORITIES
          CLUSTER_SECRET_FILE | /no/such         | --cluster-secret-file: /no/such: cluster secret: cannot be read
          """)
  void value_thatMakesNoSense_isOneLineWithTheOption(String name, String value, String message) {
    world.environment.put("SLURM_JOB_NODELIST", "localhost");
    give(TestMachine.option(name), value);

    assertThatThrownBy(this::cluster)
        .isInstanceOf(MountFailure.class)
        .hasMessageStartingWith(message)
        .satisfies(e -> assertThat(String.valueOf(e.getMessage()).lines()).hasSize(1));
  }

  @Test
  void timeouts_givenInPart_keepTheOthers() {
    assertThat(ClusterParser.timeouts("stall=20s, first-byte=500ms"))
        .isEqualTo(
            new PeerTimeouts(
                PeerTimeouts.DEFAULTS.connect(),
                Duration.ofMillis(500),
                Duration.ofSeconds(20),
                PeerTimeouts.DEFAULTS.total()));
  }

  @Test
  void secret_fromAFile_isRead() throws Exception {
    give(MountOption.NODES, "localhost");
    give(MountOption.CLUSTER_SECRET_FILE, secretFile(SECRET, "rw-------").toString());

    assertThat(cluster().secret()).isNotNull();
  }

  @ParameterizedTest
  @CsvSource({
    "short, rw-------, a secret must have 16 to",
    "'" + SECRET + "', rw-r-----, chmod 600"
  })
  void secret_thatIsNone_saysWhatToDo(String text, String mode, String remedy) throws Exception {
    give(MountOption.NODES, "localhost");
    give(MountOption.CLUSTER_SECRET_FILE, secretFile(text, mode).toString());

    assertThatThrownBy(this::cluster)
        .hasMessageStartingWith("--cluster-secret-file: ")
        .hasMessageContaining(remedy);
  }

  @Test
  void secret_inTheEnvironment_isTakenUnlessThereIsAFile() throws Exception {
    give(MountOption.NODES, "localhost");
    world.environment.put("PMFS_CLUSTER_SECRET", SECRET + "\n");

    assertThat(Objects.requireNonNull(cluster().secret()).requestKey().getEncoded())
        .isEqualTo(ClusterSecret.ofText(SECRET, "here").requestKey().getEncoded());

    world.environment.put("PMFS_CLUSTER_SECRET", "short");
    assertThatThrownBy(this::cluster)
        .hasMessageStartingWith("PMFS_CLUSTER_SECRET: a secret must have 16 to")
        .hasMessageNotContaining("short");
    give(MountOption.CLUSTER_SECRET_FILE, secretFile(SECRET, "rw-------").toString());
    assertThat(cluster().secret()).isNotNull();
  }

  @Test
  void options_inAConfigurationFile_areKnown() throws Exception {
    options.clear();
    Path file =
        Files.writeString(
            temporary.resolve("pmfs.toml"),
            """
            cluster = "train"
            nodes = "n[1-2]"
            replicas = 2
            remote-copies = "keep"
            peer-timeouts = "total=10s"
            cluster-address = "127.0.0.2"
            """);

    ClusterOptions cluster =
        Objects.requireNonNull(
            world
                .configuration(options, file.toString())
                .toSettings(world.surroundings())
                .cluster());

    assertThat(cluster.nodes()).containsExactly("n1", "n2");
    assertThat(cluster.replicas()).isEqualTo(2);
    assertThat(cluster.remoteCopies()).isEqualTo(RemoteCopies.KEEP);
    assertThat(cluster.timeouts().total()).isEqualTo(Duration.ofSeconds(10));
    assertThat(cluster.address()).isEqualTo("127.0.0.2");
  }

  @Test
  void text_ofACluster_hasNoSecret() throws Exception {
    assertThat(cluster("n1").toString()).doesNotContain(SECRET);
  }

  private ClusterOptions cluster(String nodes) throws MountFailure {
    give(MountOption.NODES, nodes);
    return cluster();
  }

  @Test
  void open_withAnAddressOfAnotherMachine_saysSo() throws Exception {
    give(MountOption.NODES, "127.0.0.1");
    give(MountOption.CLUSTER_ADDRESS, "192.0.2.1");
    ClusterOptions cluster = cluster();

    assertThatThrownBy(() -> cluster.open("dataset", temporary, "host", false))
        .isInstanceOf(MountFailure.class)
        .hasMessage(
            "--cluster-address: 192.0.2.1: is not an address of this machine; run ip address to"
                + " list them");
  }

  @ParameterizedTest
  @ValueSource(strings = {"127.0.0.1", "127.0.0.1,192.0.2.1"})
  void secret_notGiven_isAskedForAlsoOnOneMachine(String nodes) {
    world.environment.remove("PMFS_CLUSTER_SECRET");

    assertThatThrownBy(() -> cluster(nodes))
        .isInstanceOf(MountFailure.class)
        .hasMessage(
            "--cluster: needs a secret: give all nodes the same --cluster-secret-file FILE, of mode"
                + " 0600 (head -c 32 /dev/urandom | base64 > FILE)");
  }

  @Test
  void secret_notGivenWithADirectory_isMadeThereByTheMount() throws Exception {
    world.environment.remove("PMFS_CLUSTER_SECRET");
    give(MountOption.CLUSTER_DIR, "shared");

    ClusterOptions first = cluster();
    assertThat(first.secret()).isNull();
    assertThat(world.directory.resolve("shared")).as("nothing is made by looking").doesNotExist();

    byte[] made = first.commonSecret().requestKey().getEncoded();
    ClusterOptions second = cluster();
    assertThat(Objects.requireNonNull(second.secret()).requestKey().getEncoded()).isEqualTo(made);
    assertThat(second.commonSecret().requestKey().getEncoded()).isEqualTo(made);
  }

  @Test
  void secret_inADirectoryThatOthersMayRead_isRefused() throws Exception {
    world.environment.remove("PMFS_CLUSTER_SECRET");
    Files.move(
        secretFile(SECRET, "rw-r--r--"),
        Files.createDirectories(world.directory.resolve("shared")).resolve("secret"));
    give(MountOption.CLUSTER_DIR, "shared");

    assertThatThrownBy(this::cluster)
        .hasMessageStartingWith("--cluster-dir: ")
        .hasMessageContaining("chmod 600");
  }

  @Test
  void nodes_andADirectory_areTooMuch() {
    give(MountOption.NODES, "n1");
    give(MountOption.CLUSTER_DIR, "d");

    assertThatThrownBy(this::cluster).hasMessage("--cluster-dir: not together with --nodes");
  }
}
