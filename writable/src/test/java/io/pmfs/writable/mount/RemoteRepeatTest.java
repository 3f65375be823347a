package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.DaemonThread;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import io.pmfs.writable.remote.OwnerServer;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Promise: a request of another node is made once and gets its answer, however long it waits for
 * the owner's source and however often its connection breaks meanwhile.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class RemoteRepeatTest {
  private static final long ROOT = WritableFileSystem.ROOT;
  private static final FileName MADE = FileName.of("made");
  private static final byte RESULT = 0;
  private static final byte FAILURE = 1;
  private static final Duration SOON = Duration.ofSeconds(20);
  private static final long NUMBER = 1_000_000;
  private static final long PATIENCE_MILLIS = 100;

  @TempDir Path directory;

  private final ExecutorService programs = Executors.newCachedThreadPool();
  private TwoNodes nodes;

  @BeforeEach
  void open() throws Exception {
    nodes = new TwoNodes(directory);
    nodes.waitForSource();
  }

  @AfterEach
  void close() {
    nodes.owner.calls.setHanging(false);
    programs.shutdownNow();
    nodes.close();
  }

  /** A program makes a directory, and only the source knows whether the name is free. */
  private Future<Node> mkdirThatWaits(Caller caller) throws Exception {
    nodes.owner.calls.setHanging(true);
    Future<Node> program = programs.submit(() -> nodes.remote.mkdir(ROOT, MADE, 0755, caller));
    nodes.owner.calls.awaitHanging();
    return program;
  }

  /** The owner gets a request again, and waits with its answer. */
  private Future<byte[]> repeated(String name, Caller caller) {
    return repeated(name, nodes.link.lastOf(name, caller.unique()));
  }

  private Future<byte[]> repeated(String name, byte[] again) {
    FutureTask<byte[]> repeated = new FutureTask<>(() -> nodes.link.server().answer(name, again));
    Thread thread = DaemonThread.lasting("repeated", repeated);
    thread.start();
    Await.until("the repetition waits", () -> isWaiting(thread));
    return repeated;
  }

  private static boolean isWaiting(Thread thread) {
    return thread.getState() == Thread.State.WAITING
        || thread.getState() == Thread.State.TIMED_WAITING;
  }

  private static <T> T answer(Future<T> program) throws Exception {
    return program.get(SOON.toSeconds(), TimeUnit.SECONDS);
  }

  private static void awaitEndOfPatience() {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MILLIS);
    Await.until("the patience is over", () -> System.nanoTime() > end);
  }

  private static void assertResult(byte[] answer) {
    assertThat(answer[Integer.BYTES]).isEqualTo(RESULT);
  }

  @Test
  void requestThatWaits_isKnownAfterManyOthers() throws Exception {
    nodes.remote.parent(ROOT);
    Caller caller = nodes.caller();
    Future<Node> program = mkdirThatWaits(caller);
    makeOthers(caller);
    Future<byte[]> second = repeated("mkdir", caller);
    nodes.owner.calls.setHanging(false);
    assertThat(answer(program)).isNotNull();
    assertResult(answer(second));
  }

  @Test
  void requestWhoseAnswerIsLost_isMadeOnce_howeverManyOthersThereAre() throws Exception {
    nodes.remote.parent(ROOT);
    Caller caller = nodes.caller();
    nodes.link.losesAnswerTo = "mkdir";
    nodes.link.beforeLoss = () -> makeOthers(caller);
    assertThat(nodes.remote.mkdir(ROOT, MADE, 0755, caller)).isNotNull();
  }

  private void makeOthers(Caller caller) {
    for (int i = 1; i <= 20_000; i++) {
      byte[] other = nodes.link.lastOf("parent", caller.unique() + 2L * i);
      assertResult(nodes.link.server().answer("parent", other));
    }
  }

  /** How long the owner is away does not include how long it worked on the request. */
  @Test
  void requestThatWaits_longerThanTheOwnerMayBeAway_isRepeated() throws Exception {
    nodes.joinAgain(PATIENCE_MILLIS);
    Future<Node> program = mkdirThatWaits(nodes.caller());
    awaitEndOfPatience();
    nodes.link.losesAnswerTo = "mkdir";
    nodes.owner.calls.setHanging(false);
    assertThat(answer(program)).isNotNull();
  }

  /** A kernel sends a request again to the node's next daemon, which gives it another number. */
  @Test
  void requestThatIsRepeated_withAnotherNumber_isInterruptedByIt() throws Exception {
    nodes.remote.parent(ROOT);
    Caller caller = nodes.caller();
    Future<Node> unused = mkdirThatWaits(caller);
    byte[] again = nodes.link.lastOf("mkdir", caller.unique());
    ByteBuffer.wrap(again).putLong(TwoNodes.NUMBER, NUMBER);
    Future<byte[]> second = repeated("mkdir", again);
    nodes.link.server().answer("interrupt", nodes.link.interruptOf(NUMBER));
    assertThat(answer(second)[Integer.BYTES]).isEqualTo(FAILURE);
  }

  @Test
  void ownerThatDoesNotKnowTheNode_isJoinedOnce() throws Exception {
    nodes.link.asked.clear();
    nodes.link.parents = new CountDownLatch(2);
    nodes.serve(new OwnerServer(nodes.owner.mount()));
    Future<Long> first = programs.submit(() -> nodes.remote.parent(ROOT));
    Future<Long> second = programs.submit(() -> nodes.remote.parent(ROOT));
    assertThat(answer(first)).isEqualTo(answer(second));
    assertThat(nodes.link.asked).containsOnlyOnce("join");
  }

  /** The owner interrupts it with those that the node has given up; the answer is lost. */
  @Test
  void requestThatIsRepeated_afterItsNodeGaveOthersUp_isMade() throws Exception {
    Future<Node> program = mkdirThatWaits(nodes.caller());
    nodes.link.losesAnswerTo = "mkdir";
    nodes.link.server().answer("attributes", nodes.link.fromLater("attributes"));
    nodes.owner.calls.setHanging(false);
    assertThat(answer(program)).isNotNull();
  }

  @Test
  void looksThatAreGivenUp_doNotInterruptRequests() throws Exception {
    nodes.remote.parent(ROOT);
    long era = nodes.link.eraOf("parent");
    nodes.link.isCut = true;
    assertThat(nodes.remote.drain(0)).isFalse();
    assertThat(nodes.remote.drainStatus().away()).isNotNull();
    assertThat(nodes.remote.waiting(1)).isEmpty();
    nodes.remote.attributes(ROOT);
    nodes.link.isCut = false;
    nodes.remote.parent(ROOT);
    assertThat(nodes.link.eraOf("parent")).isEqualTo(era);
  }

  @Test
  void requestThatIsRefused_becauseOthersWait_isRepeatedAsLongAsTheyWait() throws Exception {
    nodes.joinAgain(PATIENCE_MILLIS);
    nodes.link.isBusy = true;
    Future<Node> program =
        programs.submit(() -> nodes.remote.mkdir(ROOT, MADE, 0755, nodes.caller()));
    awaitEndOfPatience();
    int before = nodes.link.refused.get();
    Await.until("it is refused again", () -> nodes.link.refused.get() > before + 2);
    nodes.link.isBusy = false;
    assertThat(answer(program)).isNotNull();
  }

  @Test
  void looksThatAreRefused_becauseOthersWait_doNotSayThatTheOwnerIsAway() throws Exception {
    nodes.link.isBusy = true;
    assertThat(nodes.remote.drain(0)).isFalse();
    assertThat(nodes.remote.drainStatus().away()).isNull();
    assertThat(nodes.remote.stateFailure()).isNull();
  }

  /** The mount of a node ends without a word while its request waits; the next one begins. */
  @Test
  void requestOfAFormerMount_thatWaits_isNotMadeAnyMore() throws Exception {
    nodes.joinAgain(PATIENCE_MILLIS);
    Future<Node> program = mkdirThatWaits(nodes.caller());
    nodes.link.losesAnswerTo = "mkdir";
    nodes.joinAgain(PATIENCE_MILLIS);
    nodes.owner.calls.setHanging(false);
    assertThatThrownBy(() -> answer(program)).hasMessageContaining("EIO");
    assertThat(nodes.owner.find(MADE.toString())).isNull();
  }

  @Test
  void requestOfANodeThatIsGone_thatWaits_leavesNoFileOpen() throws Exception {
    nodes.joinAgain(PATIENCE_MILLIS);
    long[] now = {1};
    OwnerServer server = new OwnerServer(nodes.owner.mount(), () -> now[0]);
    nodes.serve(server);
    nodes.remote.attributes(ROOT);
    nodes.owner.calls.setHanging(true);
    Future<Opened> program = programs.submit(() -> nodes.create(MADE));
    nodes.owner.calls.awaitHanging();
    nodes.link.losesAnswerTo = "createHere";
    nodes.link.isCut = true;
    server.present(Set.of());
    now[0] += 31_000_000_000L;
    server.present(Set.of());
    awaitEndOfPatience();
    nodes.owner.calls.setHanging(false);
    assertThatThrownBy(() -> answer(program)).hasMessageContaining("EIO");
    nodes.owner.put(MADE.toString(), "text");
    assertThat(nodes.owner.read(MADE.toString())).isEqualTo("text");
  }
}
