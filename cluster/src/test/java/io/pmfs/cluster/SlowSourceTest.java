package io.pmfs.cluster;

import static io.pmfs.source.FaultyStore.Operation.LIST;
import static io.pmfs.source.FaultyStore.Operation.OPEN;
import static io.pmfs.source.FaultyStore.Operation.READ_LINK;
import static io.pmfs.source.FaultyStore.Operation.STATFS;
import static io.pmfs.source.FaultyStore.Operation.STATUS;
import static io.pmfs.source.FaultyStore.Operation.XATTRS;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cluster.client.HttpPeerClient;
import io.pmfs.cluster.client.PeerClient;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.members.View;
import io.pmfs.cluster.peers.FakeService;
import io.pmfs.cluster.server.PeerLimits;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.source.FaultyStore;
import io.pmfs.stage.copies.RemoteCopies;
import io.pmfs.tier.Hold;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Two nodes over HTTP, and a source that does not answer one of them, or both. */
@Timeout(60)
final class SlowSourceTest {
  private static final int SIZE = 1000;
  private static final int FILES = 8;

  /** Every request except those to a file that is open already. */
  private static final FaultyStore.Operation[] BY_PATH = {
    STATUS, LIST, READ_LINK, OPEN, XATTRS, STATFS
  };

  private final List<HttpPeerClient> clients = new ArrayList<>();
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final List<String> files = new ArrayList<>();
  private TestNodes nodes;
  private TestNodes.Node reader;
  private TestNodes.Node owner;
  private Member ownerMember;

  @TempDir Path directory;

  @BeforeEach
  void start() throws Exception {
    nodes = new TestNodes(directory, RemoteCopies.NEVER, 1, 1 << 30, this::overHttp);
    nodes.patience = Duration.ofSeconds(2);
    reader = nodes.add();
    owner = nodes.add();
    ownerMember = nodes.serve(owner, PeerLimits.DEFAULTS);
    View view = new View(List.of(nodes.serve(reader, PeerLimits.DEFAULTS), ownerMember));
    reader.see(view);
    owner.see(view);
    for (int i = 0; files.size() < FILES; i++) {
      String name = "f" + i;
      nodes.store.file(name, i, SIZE);
      if (owner.owners.isOwn(FileName.of(name))) {
        files.add(name);
      }
    }
    // Both nodes know the names.
    for (String file : files) {
      owner.number(file);
      reader.number(file);
    }
  }

  private PeerClient overHttp(PeerClient direct) {
    Suspects withoutSource = ((TestNodes.Node) direct).withoutSource;
    HttpPeerClient client =
        new HttpPeerClient(
            FakeService.key(), null, FakeService.PATIENT, 2, withoutSource::isSuspected, null);
    clients.add(client);
    return client;
  }

  @AfterEach
  void stop() {
    owner.faulty.clearFaults();
    reader.faulty.clearFaults();
    threads.shutdownNow();
    nodes.close();
    clients.forEach(HttpPeerClient::close);
  }

  private List<Future<byte[]>> readAll() {
    List<Future<byte[]>> reads = new ArrayList<>();
    for (String file : files) {
      reads.add(threads.submit(() -> reader.read(file)));
    }
    return reads;
  }

  private void assertRead(List<Future<byte[]>> reads) throws Exception {
    for (int i = 0; i < reads.size(); i++) {
      assertThat(reads.get(i).get()).isEqualTo(nodes.expected().get(files.get(i)));
    }
  }

  @Test
  void source_thatHangsForTheOwnerAlone_isReadByTheOthers() throws Exception {
    owner.faulty.on(BY_PATH).hold();

    assertRead(readAll());

    assertThat(reader.withoutSource.isSuspected(ownerMember)).isTrue();
    assertThat(reader.suspects.isSuspected(ownerMember)).isFalse();
  }

  /** Readers that wait for the owner do not ask the source as well. */
  @Test
  void source_thatHangsForAll_isAskedByItsOwnerAndAFewMore() throws Exception {
    Hold byOwner = owner.faulty.on(BY_PATH).hold();
    Hold byReader = reader.faulty.on(BY_PATH).hold();

    List<Future<byte[]>> reads = readAll();
    Await.until("the owner and a probe wait", () -> byReader.count() == 1);
    Thread.sleep(2 * nodes.patience.toMillis());

    assertThat(byReader.count()).isLessThanOrEqualTo(SourceProbes.MOST);
    assertThat(reader.withoutSource.isSuspected(ownerMember)).isFalse();
    byOwner.release();
    byReader.release();
    assertRead(reads);
    assertThat(reader.suspects.isSuspected(ownerMember)).isFalse();
    assertThat(byReader.count())
        .as("asked of the source when it answered again")
        .isLessThanOrEqualTo(SourceProbes.MOST);
  }
}
