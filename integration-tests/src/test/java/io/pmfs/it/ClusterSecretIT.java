package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Whom a node of a cluster answers, and with whom it joins. */
final class ClusterSecretIT {
  private ClusterBed bed;

  @BeforeEach
  void make() {
    Nodes.require();
    Machine.requireFuse();
    bed = new ClusterBed(3, Dataset.sizes(20, 50_000));
  }

  @AfterEach
  void remove() {
    if (bed != null) {
      bed.close();
    }
  }

  private Command mount(Node node, String... options) {
    Path mountpoint = node.pmfs().mountpoint();
    return node.pmfs().run(node.pmfs().mountArguments(bed.dataset().root(), mountpoint, options));
  }

  @Test
  void mount_withoutASecretOrWithOneThatOthersMayRead_isRefusedInOneLine() {
    Node node = bed.node(0);
    Command open = mount(node, "--cluster", "job", "--nodes", bed.addresses());
    assertThat(open.exit()).isNotZero();
    assertThat(open.errorLines()).singleElement().asString().contains("--cluster-secret-file");

    Path readable = bed.scratch().root().resolve("readable");
    ClusterBed.writeSecret(readable, "a secret that all may read", "rw-r--r--");
    Command shown = mount(node, bed.options("--cluster-secret-file", readable.toString()));
    assertThat(shown.exit()).isNotZero();
    assertThat(shown.errorLines()).singleElement().asString().contains("chmod 600");

    Command alone = mount(node, "--nodes", bed.addresses());
    assertThat(alone.exit()).isNotZero();
    assertThat(alone.errorLines()).singleElement().asString().contains("--cluster NAME");
    assertThat(Mounts.at(node.pmfs().mountpoint())).isFalse();
  }

  @Test
  @OnRequest("cluster")
  void node_withAnotherSecret_staysAloneAndWorks() {
    Path other = bed.scratch().root().resolve("other");
    ClusterBed.writeSecret(other, "a secret of nobody else", "rw-------");
    String[] patient = ClusterBed.PATIENT.toArray(String[]::new);
    bed.mount(bed.node(0), patient);
    bed.mount(bed.node(2), "--cluster-secret-file", other.toString());
    bed.mount(bed.node(1), patient);
    for (int member = 0; member < 2; member++) {
      ClusterBed.awaitMembers(bed.node(member), 2);
    }
    bed.epoch();
    bed.awaitStagingIdle();
    assertThat(bed.node(2).mounted().status().number("sourceOperations.bytes"))
        .isEqualTo(bed.bytes());
    assertThat(bed.sum("sourceOperations.bytes")).isEqualTo(2 * bed.bytes());
    assertThat(bed.node(2).mounted().status().size("cluster.members")).isEqualTo(1);
  }

  @Test
  @OnRequest("cluster")
  void requests_ofStrangers_areRefusedAndCounted() {
    bed.mountAll();
    Node server = bed.node(0);
    Node stranger = bed.node(2);
    String url = "http://" + server.address() + ":" + port(server);
    String file = url + "/v1/data/" + bed.dataset().items().get(0).name();
    String forged = "Authorization: PMFS1 time=1, nonce=0123456789abcdef-1, mac=" + "0".repeat(64);

    List<List<String>> requests =
        List.of(
            List.of(file),
            List.of("-r", "0-18446744073709551616", file),
            List.of("-H", forged, file),
            List.of("-H", "Authorization: Bearer secret", file),
            List.of("--path-as-is", url + "/v1/data/../../../etc/passwd"),
            List.of(url + "/v1/data/%2e%2e/%2e%2e/etc/passwd"),
            List.of(url + "/v1/directory/"),
            List.of(
                "-X", "POST", "-d", "{\"task\": \"evict\", \"paths\": [\"\"]}", url + "/v1/task"),
            List.of("-X", "DELETE", url + "/v1/task/latest"),
            List.of(url + "/"));
    for (List<String> request : requests) {
      List<String> line = new ArrayList<>(List.of("curl", "-s", "-o", "/dev/null"));
      line.addAll(List.of("-w", "%{http_code}", "--max-time", "30"));
      line.addAll(request);
      assertThat(stranger.run(line.toArray(String[]::new)).out())
          .as("%s", request)
          .isEqualTo("401");
    }
    assertThat(server.mounted().status().number("cluster.served.refused.401"))
        .isEqualTo(requests.size());

    String talk = "exec 3<>/dev/tcp/" + server.address() + "/" + port(server);
    talk += " && head -c 100000 /dev/urandom >&3; timeout 30 head -n 1 <&3";
    assertThat(stranger.run("bash", "-c", talk).out()).doesNotContain(" 200 ");
    bed.epoch();
    bed.awaitMembers(3);
  }

  private static long port(Node node) {
    Status status = node.mounted().status();
    int self =
        IntStream.range(0, status.size("cluster.members"))
            .filter(index -> status.flag("cluster.members." + index + ".self"))
            .findFirst()
            .orElseThrow();
    return status.number("cluster.members." + self + ".port");
  }
}
