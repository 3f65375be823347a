package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cluster.client.HttpPeerClient;
import io.pmfs.cluster.client.PeerClient;
import io.pmfs.cluster.client.PeerTimeouts;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.members.View;
import io.pmfs.cluster.peers.FakeService;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.source.SourceFile;
import io.pmfs.stage.copies.RemoteCopies;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * A node whose peers take connections and requests, and never answer: as after a network was cut in
 * two, or in front of stopped machines. A reader waits for all of them together as long as for one.
 */
@Timeout(120)
final class SilentPeersTest {
  private static final Duration SILENCE = Duration.ofSeconds(2);

  /** More than one peer's silence, with room for a busy machine; less than that of two. */
  private static final Duration LIMIT = Duration.ofMillis(3_700);

  private static final PeerTimeouts TIMEOUTS =
      new PeerTimeouts(Duration.ofSeconds(1), SILENCE, SILENCE, Duration.ofSeconds(60));

  private static final int SIZE = 1000;
  private static final int LARGE = 20 << 20;

  private final List<ServerSocket> sockets = new ArrayList<>();
  private final List<HttpPeerClient> clients = new ArrayList<>();
  private TestNodes nodes;
  private TestNodes.Node reader;

  @TempDir Path directory;

  @BeforeEach
  void start() throws Exception {
    nodes = new TestNodes(directory, RemoteCopies.KEEP, 2, 1 << 30, this::overHttp);
    nodes.readerPatience = TIMEOUTS.ofAReader();
    reader = nodes.add();
  }

  private PeerClient overHttp(PeerClient direct) {
    HttpPeerClient client =
        new HttpPeerClient(FakeService.key(), null, TIMEOUTS, 2, peer -> false, new UUID(7, 0));
    clients.add(client);
    return client;
  }

  /** The kernel accepts connections for it; no program answers them. */
  private Member silent(int number) throws IOException {
    ServerSocket socket = new ServerSocket(0, 100, InetAddress.getLoopbackAddress());
    sockets.add(socket);
    return new Member(
        new UUID(9, number), number, "silent" + number, "127.0.0.1", socket.getLocalPort());
  }

  private void meetSilent(int count) throws IOException {
    List<Member> members = new ArrayList<>(List.of(reader.member));
    for (int i = 0; i < count; i++) {
      members.add(silent(members.size()));
    }
    reader.see(new View(members));
  }

  @AfterEach
  void stop() throws IOException {
    nodes.close();
    clients.forEach(HttpPeerClient::close);
    for (ServerSocket socket : sockets) {
      socket.close();
    }
  }

  /** Makes files, and has the reader look them up. */
  private void know(int count, int size) throws Exception {
    for (int i = 0; i < count; i++) {
      nodes.store.file("f" + i, i, size);
    }
    for (int i = 0; i < count; i++) {
      reader.number("f" + i);
    }
  }

  /** One of these files that the reader does not own. */
  private String ofOthers() {
    for (int i = 0; ; i++) {
      if (!reader.owners.isOwn(FileName.of("f" + i))) {
        return "f" + i;
      }
    }
  }

  private interface Work {
    void run() throws Exception;
  }

  private static Duration timeOf(Work work) throws Exception {
    long start = System.nanoTime();
    work.run();
    return Duration.ofNanos(System.nanoTime() - start);
  }

  private void assertRead(String name) throws Exception {
    assertThat(reader.read(name)).isEqualTo(nodes.expected().get(name));
  }

  @Test
  void read_ofAFileThatTwoOwnAndNeitherAnswers_waitsForBothAsLongAsForOne() throws Exception {
    know(100, SIZE);
    meetSilent(2);
    String name = ofOthers();

    assertThat(timeOf(() -> assertRead(name))).isLessThan(LIMIT);
  }

  /** The owners of the directories are others than those of the file. */
  @Test
  void lookUpAndRead_ofAFile_waitTogetherHardlyLongerThanForOne() throws Exception {
    meetSilent(15);
    String path = pathOfOthers();
    nodes.store.file(path, 1, SIZE);

    assertThat(timeOf(() -> assertRead(path))).isLessThan(LIMIT);
  }

  /** Below a directory, all with different owners, none of which is this node. */
  private String pathOfOthers() {
    for (int i = 0; ; i++) {
      String directory = "d" + i;
      List<Member> owners = new ArrayList<>();
      for (String path : List.of("", directory, directory + "/f")) {
        owners.addAll(reader.owners.of(FileName.of(path)));
      }
      if (Set.copyOf(owners).size() == owners.size() && !owners.contains(reader.member)) {
        nodes.store.directory(directory);
        return directory + "/f";
      }
    }
  }

  @Test
  void list_ofADirectoryThatTwoOwn_waitsForBothAsLongAsForOne() throws Exception {
    for (int i = 0; i < 50; i++) {
      nodes.store.directory("d" + i);
    }
    long[] number = new long[50];
    for (int i = 0; i < 50; i++) {
      number[i] = reader.number("d" + i);
    }
    meetSilent(2);
    int chosen = 0;
    while (reader.owners.isOwn(FileName.of("d" + chosen))) {
      chosen++;
    }
    long directory = number[chosen];

    assertThat(timeOf(() -> reader.fs.list(directory, 0, entry -> true))).isLessThan(LIMIT);
  }

  /** It owned the file never, and others did before. */
  @Test
  void read_ofAnOwnFileThatOthersOwnedBefore_waitsForAllOfThemAsLongAsForOne() throws Exception {
    know(200, SIZE);
    List<Member> silent = List.of(silent(1), silent(2), silent(3));
    // Each view has other owners; those of all views are members still.
    for (List<Member> members :
        List.of(
            silent.subList(0, 2),
            silent.subList(1, 3),
            List.of(reader.member, silent.get(0), silent.get(1), silent.get(2)))) {
      reader.see(new View(members));
    }
    String name = "";
    for (int i = 0; name.isEmpty(); i++) {
      if (reader.owners.isSelf(reader.owners.of(FileName.of("f" + i)).get(0))) {
        name = "f" + i;
      }
    }
    String path = name;

    assertThat(timeOf(() -> assertRead(path))).isLessThan(LIMIT);
  }

  /** They are asked which blocks they have, and for blocks. */
  @Test
  void read_ofALargeFileThatTwoOwnAndNeitherAnswers_waitsForBothAsLongAsForOne() throws Exception {
    know(20, LARGE);
    meetSilent(2);
    String name = ofOthers();

    SourceVersion version = reader.fs.inode(reader.number(name)).attributes().version();
    try (SourceFile file = reader.peers.openVersion(FileName.of(name), version)) {
      ByteBuffer block = ByteBuffer.allocateDirect(SIZE);
      assertThat(timeOf(() -> file.read(0, block))).isLessThan(LIMIT);
      assertThat(block.flip())
          .isEqualTo(ByteBuffer.wrap(nodes.store.expected(FileName.of(name), 0, SIZE)));
    }
  }
}
