package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.posix.NoThreads;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import io.pmfs.writable.remote.OwnerServer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

class RemoteFileSystemTest {
  private static final FileName A = FileName.of("a");
  private static final long ROOT = WritableFileSystem.ROOT;

  @TempDir Path directory;

  private TwoNodes nodes;
  private Driver owner;
  private TwoNodes.Link link;
  private WritableFileSystem remote;

  @BeforeEach
  void open() throws Exception {
    nodes = new TwoNodes(directory);
    owner = nodes.owner;
    link = nodes.link;
    remote = nodes.remote;
  }

  @AfterEach
  void close() {
    nodes.close();
  }

  private void joinAgain() throws FsException {
    nodes.joinAgain(100);
    remote = nodes.remote;
  }

  private Caller caller() {
    return nodes.caller();
  }

  private Opened create(FileName name) throws FsException {
    return nodes.create(name);
  }

  private void write(Opened file, long offset, String text) throws FsException {
    nodes.write(file, offset, text);
  }

  private void close(Opened file) throws FsException {
    nodes.close(file);
  }

  private void put(FileName name, String text) throws FsException {
    nodes.put(name, text);
  }

  private String read(long inode) throws FsException {
    return nodes.read(inode);
  }

  private static void assertErrno(Errno errno, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(
            FsException.class, failure -> assertThat(failure.errno()).isEqualTo(errno));
  }

  @Test
  void join_ownerComesLaterThanOperationsWait_isWaitedFor() throws Exception {
    link.lostRequests = 8; // some two seconds of questions
    nodes.joinAgain(Duration.ofSeconds(30), 100);
    assertThat(link.lostRequests).isZero();
  }

  @Test
  void join_ownerDoesNotCome_failsWhenTheTimeIsOver() {
    link.isCut = true;
    long begin = System.nanoTime();
    assertThatThrownBy(() -> nodes.joinAgain(Duration.ofMillis(200), 30_000))
        .isInstanceOf(FsException.class)
        .hasMessage("EIO: node1, which owns this mount's names, does not answer: no route");
    assertThat(System.nanoTime() - begin).isLessThan(20_000_000_000L);
    link.isCut = false;
  }

  @Test
  void file_thatWasClosed_isSeenByBothAndReachesTheSource() throws Exception {
    put(A, "one");
    assertThat(owner.read("a")).isEqualTo("one");
    assertThat(read(owner.node("a").inode())).isEqualTo("one");
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 one");
  }

  @Test
  void names_areTheOwners() throws Exception {
    Node made = remote.mkdir(ROOT, FileName.of("d"), 0750, caller());
    assertThat(owner.node("d").inode()).isEqualTo(made.inode());
    owner.put("d/x", "text");
    Node found = Objects.requireNonNull(remote.lookup(made.inode(), FileName.of("x")));
    assertThat(found.attributes().size()).isEqualTo(4);
    remote.rename(made.inode(), FileName.of("x"), ROOT, A, 0, caller());
    assertThat(owner.tree()).isEqualTo(Map.of("a", "file 644 text", "d", "dir 750"));
    assertThat(remote.lookup(made.inode(), FileName.of("x"))).isNull();
  }

  @Test
  void failure_hasTheOwnersErrno() {
    assertErrno(Errno.ENOENT, () -> remote.unlink(ROOT, A, caller()));
    assertErrno(Errno.ENOTDIR, () -> remote.lookup(create(A).node().inode(), A));
  }

  @Test
  void listing_ofMoreThanOneAnswer_hasEachNameOnce() throws Exception {
    for (int i = 0; i < 2500; i++) {
      owner.mkdir("d" + i);
    }
    List<String> names = new ArrayList<>();
    remote.list(ROOT, 0, entry -> names.add(entry.name().toString()));
    assertThat(names).doesNotHaveDuplicates().hasSize(2500);
    List<Long> positions = new ArrayList<>();
    remote.list(ROOT, 0, entry -> positions.size() < 3 && positions.add(entry.position()));
    List<String> rest = new ArrayList<>();
    remote.list(ROOT, positions.get(2), entry -> rest.add(entry.name().toString()));
    assertThat(rest).isEqualTo(names.subList(3, 2500));
  }

  @Test
  void attributes_extendedAttributesAndNulls_travel() throws Exception {
    put(A, "text");
    long inode = owner.node("a").inode();
    remote.setAttributes(
        inode, new NewAttributes(0600, null, 7, null, null, null, 0, false), caller());
    assertThat(owner.node("a").attributes().gid()).isEqualTo(7);
    FileName name = FileName.of("user.x");
    assertThat(remote.extendedAttribute(inode, name)).isNull();
    remote.setExtendedAttribute(inode, name, new byte[] {1, 0, -1}, 0, caller());
    assertThat(remote.extendedAttribute(inode, name)).containsExactly(1, 0, -1);
    assertThat(remote.extendedAttributes(inode)).containsOnlyKeys(name);
    assertThat(remote.statistics()).isEqualTo(owner.mount().statistics());
  }

  @Test
  void change_whoseAnswerIsLost_isMadeOnce() throws Exception {
    link.lostAnswers = 1;
    Opened file = remote.create(ROOT, A, 0644, OutputCalls.O_EXCL | OutputCalls.O_RDWR, caller());
    link.lostAnswers = 1;
    remote.write(file.node().inode(), file.handle(), 0, Driver.bytes("one"), true, false, caller());
    close(file);
    assertThat(owner.read("a")).isEqualTo("one");
    link.lostAnswers = 1;
    remote.unlink(ROOT, A, caller());
    assertThat(owner.tree()).isEmpty();
  }

  @Test
  void command_whoseAnswerIsLost_isMadeOnce() throws Exception {
    owner.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("mkdir")) {
              throw new FsException(Errno.EACCES, "refused");
            }
          }
        });
    owner.mkdir("a");
    owner.drainAll();
    link.losesAnswerTo = "drop";
    assertThat(remote.drop(A)).containsExactly("a");
    owner.mkdir("a");
    owner.drainAll();
    assertThat(remote.drop(A)).containsExactly("a");
  }

  @Test
  void change_thatWasGivenUp_isNotMadeAfterLaterOnes() throws Exception {
    joinAgain();
    put(A, "first");
    FileName whole = FileName.of("whole");
    link.isCut = true;
    assertErrno(Errno.EIO, () -> remote.rename(ROOT, A, ROOT, whole, 0, caller()));
    link.isCut = false;
    remote.unlink(ROOT, A, caller());
    Opened second = create(A);
    assertThat(link.server().answer("rename", link.onItsWay)[4]).isEqualTo((byte) 4);
    assertThat(owner.names("")).containsExactly("a");
    close(second);
  }

  /** A former process had a clock that was ahead, or a member invents a request. */
  @Test
  @Timeout(value = 20, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void request_thatArrivesWithALaterTime_doesNotShutTheNodeOut() throws Exception {
    put(A, "one");
    link.server().answer("flush", link.fromLater("flush"));
    put(FileName.of("b"), "two");
    assertThat(owner.read("b")).isEqualTo("two");
  }

  @Test
  void change_thatADeadOwnerHadMade_isMadeOnce() throws Exception {
    link.lostAnswers = Integer.MAX_VALUE;
    Thread maker =
        new Thread(
            () -> {
              try {
                remote.mkdir(ROOT, A, 0755, caller());
                link.asked.add("made");
              } catch (FsException e) {
                link.asked.add(String.valueOf(e.getMessage()));
              }
            });
    maker.start();
    Await.until("a is made", () -> owner.find("a") != null);
    link.isCut = true;
    nodes.restartOwner();
    link.lostAnswers = 0;
    link.isCut = false;
    maker.join(20_000);
    assertThat(link.asked).contains("made");
    assertThat(owner.tree()).containsOnlyKeys("a");
  }

  @Test
  void writer_onAnotherNode_isRefusedUntilTheFirstHasClosed() throws Exception {
    Opened file = create(A);
    write(file, 0, "remote");
    assertErrno(Errno.EBUSY, () -> owner.append("a", "x"));
    assertErrno(Errno.EBUSY, () -> owner.truncate("a", 0));
    remote.flush(file.node().inode(), file.handle(), caller());
    assertThat(owner.read("a")).isEqualTo("remote");
    remote.release(file.node().inode(), file.handle());
    owner.append("a", "!");
    assertThat(owner.read("a")).isEqualTo("remote!");
  }

  /** Of two nodes that empty a file at once, one is refused and has changed nothing. */
  @Test
  void writers_thatOpenAtOnce_leaveTheContentOfOneOfThem() throws Exception {
    put(A, "before");
    long inode = owner.node("a").inode();
    ExecutorService threads = Executors.newFixedThreadPool(2);
    try {
      for (int i = 0; i < 300; i++) {
        String before = owner.read("a");
        String own = "owner " + i;
        String other = "other " + i;
        Caller owners = owner.caller();
        CyclicBarrier barrier = new CyclicBarrier(2);
        Future<Boolean> first =
            threads.submit(() -> replace(owner.mount(), inode, own, owners, barrier));
        Future<Boolean> second =
            threads.submit(() -> replace(remote, inode, other, caller(), barrier));
        List<String> possible = new ArrayList<>();
        if (first.get()) {
          possible.add(own);
        }
        if (second.get()) {
          possible.add(other);
        }
        if (possible.isEmpty()) {
          possible.add(before);
        }
        assertThat(possible).contains(owner.read("a"));
      }
    } finally {
      threads.shutdownNow();
    }
  }

  /** Returns false if another node had the file open. */
  private static boolean replace(
      WritableFileSystem mount, long inode, String text, Caller caller, CyclicBarrier barrier)
      throws Exception {
    barrier.await();
    Opened file;
    try {
      file = mount.open(inode, OutputCalls.O_WRONLY | OutputCalls.O_TRUNC, caller);
    } catch (FsException e) {
      assertThat(e.errno()).isEqualTo(Errno.EBUSY);
      return false;
    }
    Caller later = caller.unasked();
    mount.write(inode, file.handle(), 0, Driver.bytes(text), false, false, later);
    mount.flush(inode, file.handle(), later);
    mount.release(inode, file.handle());
    return true;
  }

  @Test
  void writer_ofANodeThatIsGone_isClosedAfterAWhile() throws Exception {
    long[] now = {1};
    OwnerServer server = server(now);
    Opened file = create(A);
    write(file, 0, "what came");
    server.present(Set.of());
    now[0] += 29_000_000_000L;
    server.present(Set.of());
    assertErrno(Errno.EBUSY, () -> owner.append("a", "x"));
    now[0] += 2_000_000_000L;
    server.present(Set.of());
    Await.until("the file is closed", () -> isClosed("what came"));
    owner.append("a", "!");
    assertThat(owner.read("a")).isEqualTo("what came!");
    // The node comes back, and its program writes on.
    write(file, 0, "W");
    assertThat(owner.read("a")).isEqualTo("What came!");
  }

  @Test
  void writer_ofANodeThatWasGoneForAMoment_goesOn() throws Exception {
    long[] now = {1};
    OwnerServer server = server(now);
    Opened file = create(A);
    server.present(Set.of());
    now[0] += 20_000_000_000L;
    server.present(Set.of(TwoNodes.MEMBER));
    now[0] += 20_000_000_000L;
    server.present(Set.of(TwoNodes.MEMBER));
    assertErrno(Errno.EBUSY, () -> owner.append("a", "x"));
    close(file);
  }

  /** The owner gets no thread for it, so the next look at the members does it. */
  @Test
  void writer_ofAFormerMountOfANode_isClosedWithoutAThread() throws Exception {
    OwnerServer server = server(new long[] {1});
    write(create(A), 0, "what came");
    try (NoThreads none = NoThreads.named("pmfs-node-left")) {
      nodes.remountNode();
      assertThat(none.refused()).isEqualTo(1);
    }
    assertErrno(Errno.EBUSY, () -> owner.append("a", "x"));
    server.present(Set.of(TwoNodes.MEMBER));
    Await.until("the file is closed", () -> isClosed("what came"));
    owner.append("a", "!");
    assertThat(owner.read("a")).isEqualTo("what came!");
  }

  /** Whether the source may have the content of a. */
  private boolean isClosed(String content) {
    try {
      owner.drainAll();
      return ("file 644 " + content).equals(owner.sourceTree().get("a"));
    } catch (FsException e) {
      return false;
    }
  }

  /** While the owner closes what the node had open, that may take long. */
  @Test
  @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void writer_ofANodeThatIsGone_andComesBack_staysOpen() throws Exception {
    long[] now = {1};
    OwnerServer server = server(now);
    write(create(A), 0, "what came");
    CountDownLatch closing = new CountDownLatch(1);
    CountDownLatch back = new CountDownLatch(1);
    link.beforeFreeze =
        () -> {
          closing.countDown();
          Await.until("the node is back", () -> back.getCount() == 0);
        };
    server.present(Set.of());
    now[0] += 31_000_000_000L;
    Thread members = DaemonThread.lasting("members", () -> server.present(Set.of()));
    members.start();
    closing.await();
    members.join();
    Opened file = create(FileName.of("b"));
    back.countDown();
    Await.until("the first file is closed", () -> isClosed("what came"));
    assertErrno(Errno.EBUSY, () -> owner.append("b", "x"));
    close(file);
    owner.append("a", "!");
    assertThat(owner.read("a")).isEqualTo("what came!");
  }

  /** The node tells the owner of it as soon as that answers again. */
  private void assertFailsWithoutAnswer(ThrowingCallable open) throws Exception {
    link.lostAnswers = Integer.MAX_VALUE;
    assertErrno(Errno.EIO, open);
    link.lostAnswers = 0;
    remote.drain(0);
  }

  @Test
  void writer_whoseOpenGotNoAnswer_isClosed() throws Exception {
    joinAgain();
    put(A, "text");
    long inode = owner.node("a").inode();
    assertFailsWithoutAnswer(() -> remote.open(inode, OutputCalls.O_WRONLY, caller()));
    owner.append("a", "!");
    assertThat(owner.read("a")).isEqualTo("text!");
  }

  @Test
  void writer_whoseFileWasCreatedWithoutAnAnswer_isClosed() throws Exception {
    joinAgain();
    assertFailsWithoutAnswer(() -> create(A));
    owner.append("a", "!");
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 !");
  }

  @Test
  void writer_whoseOpenDidNotArrive_isNone() throws Exception {
    joinAgain();
    put(A, "text");
    Opened other = remote.open(owner.node("a").inode(), OutputCalls.O_WRONLY, caller());
    link.isCut = true;
    assertErrno(Errno.EIO, () -> create(FileName.of("b")));
    link.isCut = false;
    assertThat(remote.drain(0)).isFalse();
    assertErrno(Errno.EBUSY, () -> owner.append("a", "!"));
    close(other);
    owner.append("a", "!");
    assertThat(owner.tree()).containsOnlyKeys("a");
  }

  @Test
  void writer_thatWasOpenBeforeTheOwnerStarted_isNotClosedForARequest() throws Exception {
    put(A, "text");
    Opened file = remote.open(owner.node("a").inode(), OutputCalls.O_RDWR, caller());
    nodes.restartOwner();
    write(file, 0, "T");
    owner.mount().closeUnanswered(0, new Caller(0, 0, 0, 0, 1));
    assertErrno(Errno.EBUSY, () -> owner.append("a", "x"));
    close(file);
  }

  private OwnerServer server(long[] now) {
    OwnerServer server = new OwnerServer(owner.mount(), () -> now[0]);
    nodes.serve(server);
    return server;
  }

  @Test
  void writer_thatTheRestartedOwnerDoesNotKnow_isKnownAfterItsNextWrite() throws Exception {
    Opened file = create(A);
    write(file, 0, "one");
    nodes.restartOwner();
    write(file, 3, "two");
    assertErrno(Errno.EBUSY, () -> owner.append("a", "x"));
    close(file);
    owner.append("a", "!");
    assertThat(owner.read("a")).isEqualTo("onetwo!");
  }

  @Test
  void unnamed_fileOfOneNode_livesUntilAllHaveClosedIt() throws Exception {
    put(A, "text");
    Opened file = remote.open(owner.node("a").inode(), OutputCalls.O_RDONLY, caller());
    owner.unlink("a");
    owner.mount().forget(file.node().inode(), 1);
    assertThat(read(file.node().inode())).isEqualTo("text");
    remote.release(file.node().inode(), file.handle());
    remote.forget(file.node().inode(), 1);
    remote.endSession();
    owner.drainAll();
    assertErrno(Errno.ESTALE, () -> owner.mount().attributes(file.node().inode()));
  }

  /** The next process of the owner does not know which kernel has it open. */
  @Test
  void unnamed_fileOfOneNode_livesOnAfterTheOwnerWasReplaced() throws Exception {
    put(A, "text");
    Opened file = remote.open(owner.node("a").inode(), OutputCalls.O_RDONLY, caller());
    owner.unlink("a");
    nodes.restartOwner();
    owner.mount().forget(file.node().inode(), 1);
    assertThat(read(file.node().inode())).isEqualTo("text");
    owner.mount().endSession();
    owner.drainAll();
    assertErrno(Errno.ESTALE, () -> owner.mount().attributes(file.node().inode()));
  }

  @Test
  void open_ofAFileThatAnotherKernelHasForgotten_isStale() throws Exception {
    put(A, "text");
    long inode = Objects.requireNonNull(remote.lookup(ROOT, A)).inode();
    owner.unlink("a");
    owner.mount().forget(inode, 1);
    assertErrno(Errno.ESTALE, () -> remote.open(inode, OutputCalls.O_RDONLY, caller()));
  }

  @Test
  void ownerThatDoesNotAnswer_givesEioAfterAWhile() throws Exception {
    joinAgain();
    link.isCut = true;
    assertErrno(Errno.EIO, () -> remote.mkdir(ROOT, A, 0755, caller()));
    link.isCut = false;
    remote.mkdir(ROOT, A, 0755, caller());
    assertThat(owner.tree()).containsOnlyKeys("a");
  }

  @Test
  void reading_whileTheOwnerIsAway_goesOnInFilesThatAreOpenAndKeptHere() throws Exception {
    joinAgain();
    owner.mkdir("d");
    owner.put("d/x", "text");
    long directory = Objects.requireNonNull(remote.lookup(ROOT, FileName.of("d"))).inode();
    long other = Objects.requireNonNull(remote.lookup(directory, FileName.of("x"))).inode();
    Opened file = create(A);
    long inode = file.node().inode();
    write(file, 0, "kept");
    link.isCut = true;
    assertThat(nodes.read(inode, file.handle(), 0, 100)).isEqualTo("kept");
    assertThat(remote.attributes(inode).attributes().size()).isEqualTo(4);
    assertErrno(Errno.EIO, () -> write(file, 4, "more"));
    assertErrno(Errno.EIO, () -> remote.lookup(directory, FileName.of("x")));
    assertErrno(Errno.EIO, () -> remote.attributes(directory));
    assertErrno(Errno.EIO, () -> remote.open(other, OutputCalls.O_RDONLY, caller()));
    assertErrno(Errno.EIO, () -> read(other));
    remote.release(inode, file.handle());
    assertErrno(Errno.EIO, () -> remote.attributes(inode));
    link.isCut = false;
    assertThat(read(other)).isEqualTo("text");
    assertThat(read(inode)).isEqualTo("kept");
  }

  @Test
  void reading_whileTheOwnerIsAway_goesOnAfterAnotherCloseOfTheFile() throws Exception {
    joinAgain();
    Opened file = create(A);
    long inode = file.node().inode();
    write(file, 0, "kept");
    remote.release(inode, remote.open(inode, OutputCalls.O_RDONLY, caller()).handle());
    link.isCut = true;
    assertThat(remote.attributes(inode).attributes().size()).isEqualTo(4);
    assertThat(nodes.read(inode, file.handle(), 0, 100)).isEqualTo("kept");
  }

  /** The kernel asks for attributes before it reads. */
  @Test
  void reading_whileTheOwnerIsAway_goesOnInAFileThatWasWrittenHereBefore() throws Exception {
    joinAgain();
    String large = "x".repeat((1 << 20) + 1);
    Opened file = create(A);
    long inode = file.node().inode();
    for (int at = 0; at < large.length(); at += 1 << 20) {
      write(file, at, large.substring(at, Math.min(large.length(), at + (1 << 20))));
    }
    close(file);
    Opened reader = remote.open(inode, OutputCalls.O_RDONLY, caller());
    link.isCut = true;
    assertThat(remote.attributes(inode).attributes().size()).isEqualTo(large.length());
    assertThat(nodes.read(inode, reader.handle(), 0, 100)).isEqualTo(large.substring(0, 100));
  }

  @Test
  void attributes_whileTheOwnerIsAway_areKnownOfTheRoot() throws Exception {
    joinAgain();
    Node root = remote.attributes(ROOT);
    link.isCut = true;
    assertThat(remote.attributes(ROOT)).isEqualTo(root);
  }

  @Test
  void drain_waitsForTheOwnersSource() throws Exception {
    put(A, "text");
    assertThat(remote.drain(0)).isFalse();
    assertThat(remote.waiting(10)).containsExactly("a");
    owner.drainAll();
    assertThat(remote.drain(1000)).isTrue();
    assertThat(remote.drainStatus().waitingChanges()).isZero();
  }

  @Test
  @Timeout(value = 20, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void drain_whoseTimeIsOverBeforeItAsks_ends() throws Exception {
    put(A, "text");
    assertThat(remote.drain(-1)).isFalse();
  }

  @Test
  void status_whenTheOwnerIsAway_saysSoAndRefusesNothing() throws Exception {
    joinAgain();
    put(A, "text");
    assertThat(remote.drain(0)).isFalse();
    long waiting = remote.drainStatus().waitingChanges();
    assertThat(waiting).isPositive();
    link.isCut = true;
    assertThat(remote.drain(0)).isFalse();
    DrainStatus status = remote.drainStatus();
    DrainStatus.Away away = Objects.requireNonNull(status.away());
    assertThat(away.node()).isEqualTo("node1");
    assertThat(away.isOwner()).isTrue();
    assertThat(status.refused()).isZero();
    assertThat(status.waitingChanges()).as("as it was").isEqualTo(waiting);
    assertThat(remote.stateFailure()).isNull();
    link.isCut = false;
    assertThat(remote.drain(0)).isFalse();
    assertThat(remote.drainStatus().away()).isNull();
  }

  @Test
  void request_thatIsMalformed_isRefused() {
    byte[] none = {};
    assertThatThrownBy(() -> link.server().answer("mkdir", none))
        .isInstanceOf(IllegalArgumentException.class);
    byte[] other = new byte[100];
    assertThat(link.server().answer("mkdir", other)[4]).isEqualTo((byte) 3);
  }
}
