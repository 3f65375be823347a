package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.posix.Await;
import io.pmfs.posix.FsException;
import io.pmfs.writable.Interrupts;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Promise: a request of another node that waits for the owner's source ends with its program. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class RemoteInterruptTest {
  private static final long UNIQUE = 42;
  private static final long AT_ONCE_SECONDS = 20;

  @TempDir Path directory;

  private final ExecutorService programs = Executors.newCachedThreadPool();
  private TwoNodes nodes;
  private Interrupts interrupts;

  @BeforeEach
  void open() throws Exception {
    nodes = new TwoNodes(directory);
    nodes.waitForSource();
    interrupts = ((Interrupts.Holder) nodes.remote).interrupts();
    nodes.owner.calls.makeAtSource("unseen", "content");
  }

  @AfterEach
  void close() {
    nodes.owner.calls.setHanging(false);
    nodes.setSourceHanging(false);
    programs.shutdownNow();
    nodes.close();
  }

  private Node lookUp() throws FsException {
    return Objects.requireNonNull(
        nodes.remote.lookup(WritableFileSystem.ROOT, Driver.name("unseen")));
  }

  private <T> Future<T> program(Callable<T> request) {
    return programs.submit(
        () -> {
          interrupts.begin(UNIQUE);
          try {
            return request.call();
          } finally {
            interrupts.end(UNIQUE);
          }
        });
  }

  /** A program looks up a name that only the source knows, and that hangs. */
  private Future<Node> programThatWaits() throws Exception {
    nodes.owner.calls.setHanging(true);
    Future<Node> program = program(this::lookUp);
    nodes.owner.calls.awaitHanging();
    return program;
  }

  private static void assertInterrupted(Future<?> program) {
    assertThatThrownBy(() -> program.get(AT_ONCE_SECONDS, TimeUnit.SECONDS))
        .hasCauseInstanceOf(FsException.class)
        .hasMessageContaining("EINTR");
  }

  @Test
  void request_endsWithASignal() throws Exception {
    Future<Node> program = programThatWaits();
    interrupts.interrupt(UNIQUE + 1);
    interrupts.interrupt(UNIQUE);
    assertInterrupted(program);
    nodes.owner.calls.setHanging(false);
    assertThat(lookUp()).isNotNull();
  }

  @Test
  void request_afterASignal_endsWhenItWaits() throws Exception {
    nodes.owner.calls.setHanging(true);
    Future<Node> program =
        program(
            () -> {
              interrupts.interrupt(UNIQUE);
              nodes.remote.attributes(WritableFileSystem.ROOT); // This does not wait.
              return lookUp();
            });
    assertInterrupted(program);
  }

  @Test
  void request_whenTooManyOthersWait_endsWithASignal() throws Exception {
    nodes.link.isBusy = true;
    Future<Node> program = program(this::lookUp);
    Await.until("it is refused", () -> nodes.link.refused.get() > 0);
    interrupts.interrupt(UNIQUE);
    assertInterrupted(program);
  }

  /** Threads that the owner does not know may join one after another. */
  @Test
  void request_endsWithASignal_thoughItsNodeJoinsAgain() throws Exception {
    Future<Node> program = programThatWaits();
    nodes.link.server().answer("join", nodes.link.lastOf("join"));
    interrupts.interrupt(UNIQUE);
    assertInterrupted(program);
  }

  /**
   * A node gives requests up when its network is cut; the owner still works on them, and on others
   * whose programs go on waiting.
   */
  @Test
  void requestsThatWereGivenUp_doNotHoldUpLaterOnes_andOthersAreMadeAgain() throws Exception {
    Future<Node> program = programThatWaits();
    byte[] later = nodes.link.fromLater("attributes");
    Future<byte[]> answer = programs.submit(() -> nodes.link.server().answer("attributes", later));
    assertThat(answer.get(AT_ONCE_SECONDS, TimeUnit.SECONDS)).isNotEmpty();
    nodes.owner.calls.setHanging(false);
    assertThat(program.get(AT_ONCE_SECONDS, TimeUnit.SECONDS)).isNotNull();
  }

  @Test
  void read_atTheNodesOwnSource_endsWithASignal() throws Exception {
    long inode = lookUp().inode();
    Opened file = nodes.remote.open(inode, OutputCalls.O_RDONLY, nodes.caller());
    for (int i = 0; i < 2; i++) {
      nodes.setSourceHanging(true);
      Future<String> reading = program(() -> nodes.read(inode, file.handle(), 0, 7));
      nodes.awaitSourceHanging();
      Await.until(
          "it ends",
          () -> {
            interrupts.interrupt(UNIQUE);
            return reading.isDone();
          });
      assertInterrupted(reading);
      nodes.setSourceHanging(false);
      assertThat(nodes.read(inode, file.handle(), 0, 7)).isEqualTo("content");
    }
    assertThat(nodes.link.asked).doesNotContain("read");
  }
}
