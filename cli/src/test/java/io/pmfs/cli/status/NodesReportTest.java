package io.pmfs.cli.status;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.Gson;
import io.pmfs.cluster.client.Peers;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.tasks.FakeNodes;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class NodesReportTest {
  private static final Duration LIMIT = Duration.ofSeconds(60);

  private final FakeNodes nodes = new FakeNodes();
  private final FakeNodes.Node here = nodes.add("n1");
  private final FakeNodes.Node there = nodes.add("n2");

  private NodesReport ask(Peers peers, Duration limit) throws InterruptedException {
    StatusReport own = here.status();
    return NodesReport.ask(own, Objects.requireNonNull(own.cluster()), peers, limit);
  }

  @Test
  void ask_all_haveALineAndASum() throws Exception {
    NodesReport report = ask(here, LIMIT);

    assertThat(report.isWhole()).isTrue();
    assertThat(NodesTable.of(report))
        .isEqualTo(
            """
            /mnt/dataset, cluster train
              node                              share     copies       held       read      tiers      peers     source source ops     served
              n1 10.0.0.1                      49.0 %  1,234,568    200 GiB    3.9 KiB    2.9 KiB    7.0 MiB    1.0 MiB         42    3.0 MiB
              n2 127.0.0.1                     51.0 %  1,234,568    200 GiB    3.9 KiB    2.9 KiB    7.0 MiB    1.0 MiB         42    3.0 MiB
              sum                             100.0 %  2,469,136    400 GiB    7.8 KiB    5.9 KiB   14.0 MiB    2.0 MiB         84    6.0 MiB""");
  }

  @Test
  void json_ofReport_hasThePromisedNames() throws Exception {
    assertThat(new Gson().toJson(ask(here, LIMIT)))
        .startsWith(
            "{\"mountpoint\":\"/mnt/dataset\",\"cluster\":\"train\",\"nodes\":[{\"node\":\"n1\","
                + "\"address\":\"10.0.0.1\",\"counts\":{\"share\":0.49,\"copies\":1234568,"
                + "\"usedBytes\":")
        .contains(
            "\"bytesRead\":4000,\"bytesFromTiers\":3000,\"bytesFromPeers\":7340032,"
                + "\"bytesFromSource\":1048576,\"sourceOperations\":42,\"bytesServed\":3145728}",
            "\"sum\":{\"share\":1.0,");
  }

  @Test
  void ask_nodeThatDoesNotAnswer_isNamed() throws Exception {
    there.isSilent = true;

    NodesReport report = ask(here, LIMIT);

    assertThat(report.isWhole()).isFalse();
    assertThat(report.sum().copies()).isEqualTo(1_234_568);
    assertThat(NodesTable.of(report)).contains("n2 127.0.0.1                 no answer: n2 (127");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "{}", "[", "{\"tiers\":[],\"cluster\":{}}", "\"x\"", "null"})
  void ask_nodeThatAnswersRubbish_isNamed(String json) throws Exception {
    there.answersWith((method, path, body) -> new NodeRequests.Answer(200, json));

    NodesReport report = ask(here, LIMIT);

    assertThat(report.nodes().get(1).error()).isEqualTo("its answer is not the status of a node");
  }

  @Test
  void ask_nodeThatTakesTooLong_isNamedAndNotWaitedFor() throws Exception {
    CountDownLatch never = new CountDownLatch(1);
    Peers slow =
        new Peers() {
          @Override
          public List<Member> others() {
            return here.others();
          }

          @Override
          public String call(Member peer, String method, String path, String body) {
            try {
              never.await();
            } catch (InterruptedException e) {
              Thread.currentThread().interrupt();
            }
            return "";
          }
        };

    NodesReport report = ask(slow, Duration.ofMillis(50));

    assertThat(report.nodes().get(1).error()).startsWith("no answer within");
  }

  @Test
  void ask_alone_isOneLine() throws Exception {
    there.leave();

    assertThat(ask(here, LIMIT).nodes()).hasSize(1);
  }
}
