package io.pmfs.cluster.members;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class ConnectionProbesTest {
  private static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();

  private final List<AutoCloseable> opened = new ArrayList<>();
  private final Map<InetSocketAddress, ConnectionProbes.Answer> answers = new LinkedHashMap<>();

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable each : opened) {
      each.close();
    }
  }

  private InetSocketAddress listening() throws IOException {
    ServerSocket socket = new ServerSocket(0, 50, LOOPBACK);
    opened.add(socket);
    return (InetSocketAddress) socket.getLocalSocketAddress();
  }

  private InetSocketAddress refusing() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 50, LOOPBACK)) {
      return (InetSocketAddress) socket.getLocalSocketAddress();
    }
  }

  private InetSocketAddress silent() throws IOException {
    SilentPort port = new SilentPort(new InetSocketAddress(LOOPBACK, 0));
    opened.add(port);
    return port.address();
  }

  private void run(Duration patience, List<InetSocketAddress> addresses) throws IOException {
    new ConnectionProbes(
            LOOPBACK,
            patience,
            (address, answer) -> {
              answers.put(address, answer);
              return List.of();
            })
        .run(addresses);
  }

  @Test
  void run_severalAddresses_saysWhatEachAnswers() throws Exception {
    InetSocketAddress accepted = listening();
    InetSocketAddress refused = refusing();
    InetSocketAddress silent = silent();
    run(Duration.ofMillis(500), List.of(silent, refused, accepted));
    assertThat(answers)
        .hasSize(3)
        .containsEntry(accepted, ConnectionProbes.Answer.ACCEPTED)
        .containsEntry(refused, ConnectionProbes.Answer.REFUSED)
        .containsEntry(silent, ConnectionProbes.Answer.NONE);
    assertThat(answers.keySet().stream().toList().indexOf(silent)).isEqualTo(2);
  }

  @Test
  void run_manyAreSilent_waitsForAllAtOnce() throws Exception {
    List<InetSocketAddress> addresses = new ArrayList<>();
    for (int i = 0; i < 30; i++) {
      addresses.add(silent());
    }
    InetSocketAddress accepted = listening();
    addresses.add(accepted);
    long begin = System.nanoTime();
    run(Duration.ofSeconds(1), addresses);
    // One after the other would be 30 s.
    assertThat(System.nanoTime() - begin).isLessThan(15_000_000_000L);
    assertThat(answers).hasSize(31);
    assertThat(answers.keySet().iterator().next()).isEqualTo(accepted);
  }

  @Test
  void run_moreThanAreTriedAtOnce_triesAll() throws Exception {
    List<InetSocketAddress> addresses = new ArrayList<>();
    InetSocketAddress refused = refusing();
    for (int i = 1; i <= 2 * ConnectionProbes.MOST_AT_ONCE; i++) {
      byte[] host = {127, 0, (byte) (2 + i / 250), (byte) (i % 250 + 1)};
      addresses.add(new InetSocketAddress(InetAddress.getByAddress(host), refused.getPort()));
    }
    run(Duration.ofSeconds(10), addresses);
    assertThat(answers).hasSize(addresses.size());
    assertThat(answers.values()).containsOnly(ConnectionProbes.Answer.REFUSED);
  }

  @Test
  void run_listenerAddsAddresses_triesTheseToo() throws Exception {
    InetSocketAddress first = listening();
    InetSocketAddress second = listening();
    new ConnectionProbes(
            null,
            Duration.ofSeconds(10),
            (address, answer) -> {
              answers.put(address, answer);
              return address.equals(first) ? List.of(second) : List.of();
            })
        .run(List.of(first));
    assertThat(answers.keySet()).containsExactly(first, second);
  }
}
