package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fuse.protocol.AnswerBuffers;
import io.pmfs.fuse.protocol.KernelChannel;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.RequestLatencies;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Failures of a worker, not of a request. */
@Timeout(60)
final class KernelWorkerTest {
  private KernelFixture fixture;
  private final AtomicInteger ended = new AtomicInteger();
  private final AtomicInteger failed = new AtomicInteger();

  @SuppressWarnings("NullAway.Init")
  KernelWorkerTest() {}

  @BeforeEach
  void open(@TempDir Path directory) throws Exception {
    fixture = new KernelFixture(directory);
  }

  @AfterEach
  void close() throws Exception {
    fixture.close();
  }

  /** The results of receive in order; the last one is repeated. */
  private void run(Throwable... failures) {
    Deque<Throwable> left = new ArrayDeque<>(List.of(failures));
    KernelChannel channel =
        new KernelChannel() {
          @Override
          public int receive(long buffer, int size) throws FsException {
            Throwable next = left.size() > 1 ? left.remove() : left.getFirst();
            if (next instanceof FsException e && e.errno() == Errno.ENODATA) {
              return 0;
            }
            if (next instanceof FsException e && e.errno() == Errno.ENODEV) {
              return -1;
            }
            if (next instanceof FsException e) {
              throw e;
            }
            throw (Error) next;
          }

          @Override
          public boolean send(long vectors, int count) {
            return true;
          }

          @Override
          public boolean sendPiped(int pipe, int size) {
            return true;
          }
        };
    KernelOperations operations =
        new KernelOperations(fixture.fileSystem, 1000, null, -1, 56, AccessRule.MODES);
    new KernelWorker(
            channel,
            operations,
            new RequestLatencies(),
            new RequestGate(),
            ended::incrementAndGet,
            failed::incrementAndGet,
            new AnswerBuffers(KernelProtocol.MAX_READ_BYTES))
        .run();
  }

  private static FsException failure(Errno errno) {
    return new FsException(errno, "the test");
  }

  /** Stands for a request without an answer. */
  private static FsException request() {
    return failure(Errno.ENODATA);
  }

  @Test
  void run_sessionEnds_saysSo() {
    run(failure(Errno.ENODEV));

    assertThat(ended).hasValue(1);
    assertThat(failed).hasValue(0);
  }

  @Test
  void run_errorsBetweenRequests_goesOn() {
    run(
        new StackOverflowError(),
        new NoClassDefFoundError("x"),
        failure(Errno.ENOMEM),
        failure(Errno.ENODEV));

    assertThat(ended).hasValue(1);
    assertThat(failed).hasValue(0);
  }

  /** Over the life of a daemon there may be many. */
  @Test
  void run_errorsWithRequestsBetween_doNotAddUp() {
    List<Throwable> received = new ArrayList<>();
    for (int i = 0; i < 12; i++) {
      received.addAll(List.of(failure(Errno.ENOMEM), request()));
    }
    received.add(failure(Errno.ENODEV));

    run(received.toArray(Throwable[]::new));

    assertThat(ended).hasValue(1);
    assertThat(failed).hasValue(0);
  }

  /** Ending silently would leave a mount without a daemon. */
  @Test
  void run_nothingCanBeFetched_failsAndDoesNotSayThatTheSessionEnded() {
    run(failure(Errno.EIO));

    assertThat(ended).hasValue(0);
    assertThat(failed).hasValue(1);
  }
}
