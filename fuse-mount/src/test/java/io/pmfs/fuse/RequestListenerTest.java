package io.pmfs.fuse;

import static io.pmfs.fs.PmfsFileSystem.ROOT;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fuse.protocol.AnsweredRequest;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.fuse.protocol.RequestLatencies;
import io.pmfs.fuse.protocol.RequestListener;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class RequestListenerTest {
  private static final byte[] NOTHING = new byte[16];

  @TempDir private Path directory;
  private KernelFixture fixture;
  private KernelOperations operations;
  private final RequestLatencies latencies = new RequestLatencies();
  private final Recorder recorder = new Recorder();

  /** Records what it receives. */
  private static final class Recorder implements RequestListener {
    final List<AnsweredRequest> requests = new CopyOnWriteArrayList<>();
    volatile long least;

    @Override
    public long leastNanos() {
      return least;
    }

    @Override
    public void answered(AnsweredRequest request) {
      requests.add(request);
    }
  }

  @BeforeEach
  void makeOperations() throws Exception {
    fixture = new KernelFixture(directory);
    operations = new KernelOperations(fixture.fileSystem, 1000, null, -1, 56, AccessRule.MODES);
    latencies.listen(recorder);
  }

  @AfterEach
  void closeFixture() {
    fixture.close();
  }

  private AnsweredRequest ask(Opcode opcode, long node, byte[] body) {
    recorder.requests.clear();
    try (KernelSession session = new KernelSession(operations, latencies)) {
      session.askAll(KernelSession.request(opcode.number(), node, body));
    }
    assertThat(recorder.requests).hasSize(1);
    return recorder.requests.get(0);
  }

  @Test
  void read_answered_isToldWithWhoAskedAndHowMuchCame() throws Exception {
    long before = System.nanoTime();
    AnsweredRequest read =
        ask(Opcode.READ, fixture.inode("small"), KernelMessages.read(900, 131072));

    assertThat(read.asked().operation()).isEqualTo("read");
    assertThat(List.of(read.asked().uid(), read.asked().gid(), read.asked().pid()))
        .containsExactly(1000L, 1000L, 4711L);
    assertThat(read.asked().inode()).isEqualTo(fixture.inode("small"));
    assertThat(List.of(read.asked().size(), read.asked().offset(), read.bytes()))
        .containsExactly(131072L, 900L, KernelFixture.SMALL_SIZE - 900L);
    assertThat(read.errno()).isZero();
    assertThat(read.asked().path()).isNull();
    assertThat(read.asked().beginNanos()).isBetween(before, System.nanoTime());
    assertThat(read.nanos()).isNotNegative();
  }

  @Test
  void lookup_ofWhatIsNotThere_isToldAsTheCallerSeesIt() throws Exception {
    AnsweredRequest missing = ask(Opcode.LOOKUP, ROOT, KernelMessages.name("n\u00ff"));
    AnsweredRequest there = ask(Opcode.LOOKUP, ROOT, KernelMessages.name("small"));

    assertThat(missing.asked().name()).isEqualTo(FileName.ofLatin1("n\u00ff"));
    assertThat(missing.errno()).isEqualTo(Errno.ENOENT.number());
    assertThat(there.asked().name()).isEqualTo(FileName.of("small"));
    assertThat(there.errno()).isZero();
    assertThat(there.bytes()).isEqualTo(-1);
  }

  @Test
  void others_answered_areToldWithWhatTheyHave() throws Exception {
    AnsweredRequest failed = ask(Opcode.READ, 1L << 40, KernelMessages.read(0, 100));
    AnsweredRequest listed = ask(Opcode.READDIR, ROOT, KernelMessages.read(0, 4096));
    AnsweredRequest link = ask(Opcode.READLINK, fixture.inode("link"), NOTHING);
    AnsweredRequest attribute =
        ask(Opcode.GETXATTR, ROOT, KernelMessages.xattr(10, "user.not-there"));

    assertThat(failed.errno()).isNotZero();
    assertThat(failed.bytes()).isEqualTo(-1);
    assertThat(listed.bytes()).isPositive();
    assertThat(link.bytes()).isEqualTo("small/target".length());
    assertThat(attribute.asked().name()).isEqualTo(FileName.of("user.not-there"));
    assertThat(attribute.errno()).isEqualTo(Errno.ENODATA.number());
  }

  @Test
  void request_cutShort_isToldWithoutWhatItLacks() {
    AnsweredRequest cut = ask(Opcode.LOOKUP, ROOT, new byte[0]);

    assertThat(cut.asked().name()).isNull();
    assertThat(cut.errno()).isEqualTo(Errno.EINVAL.number());
  }

  @Test
  void requests_thatWereFasterOrWantNoAnswer_areNotTold() {
    try (KernelSession session = new KernelSession(operations, latencies)) {
      session.askAll(KernelSession.request(Opcode.FORGET.number(), ROOT, new byte[8]));
      recorder.least = Long.MAX_VALUE;
      session.ask(Opcode.GETATTR, ROOT, NOTHING);
      recorder.least = 0;
      session.ask(Opcode.STATFS, ROOT, new byte[0]);
    }

    assertThat(recorder.requests)
        .extracting(request -> request.asked().operation())
        .containsExactly("statfs");
  }

  @Test
  void heartbeat_isAnsweredAndCountsNowhere() {
    String anothers = "y" + Bridge.HEARTBEAT.substring(1);
    try (KernelSession session = new KernelSession(operations, latencies)) {
      for (String name : List.of(Bridge.HEARTBEAT, anothers)) {
        assertThat(session.ask(Opcode.LOOKUP, ROOT, KernelMessages.name(name)).errno())
            .isEqualTo(Errno.ENAMETOOLONG);
      }
    }
    assertThat(recorder.requests)
        .singleElement()
        .satisfies(one -> assertThat(one.asked().name()).isEqualTo(FileName.of(anothers)));
    assertThat(latencies.snapshot())
        .singleElement()
        .satisfies(lookups -> assertThat(lookups.count()).isOne());
  }
}
