package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.Place;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Opened;
import io.pmfs.writable.remote.KeptFile;
import io.pmfs.writable.remote.NodeFiles;
import io.pmfs.writable.remote.OwnerServer;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Content that stays on the node where it was written. */
class KeptContentTest {
  private static final FileName A = FileName.of("a");
  private static final FileName B = FileName.of("b");
  private static final long ROOT = WritableFileSystem.ROOT;
  private static final int MIB = 1 << 20;

  /** More than goes to the owner when a file is closed. */
  private static final String LARGE = "abcdefgh".repeat(MIB / 4);

  @TempDir Path directory;

  private TwoNodes nodes;
  private Driver owner;

  @BeforeEach
  void open() throws Exception {
    nodes = new TwoNodes(directory);
    owner = nodes.owner;
  }

  @AfterEach
  void close() {
    nodes.close();
  }

  private static void assertErrno(Errno errno, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(
            FsException.class, failure -> assertThat(failure.errno()).isEqualTo(errno));
  }

  /** Writes as the kernel does: at most 1 MiB in a request. */
  private void write(Opened file, long offset, String text) throws FsException {
    for (int at = 0; at < text.length(); at += MIB) {
      nodes.write(file, offset + at, text.substring(at, Math.min(text.length(), at + MIB)));
    }
  }

  private Opened open(FileName name, int flags) throws FsException {
    return nodes.remote.open(owner.node(name.toString()).inode(), flags, nodes.caller());
  }

  private String readHere(Opened file, int size) throws FsException {
    return nodes.read(file.node().inode(), file.handle(), 0, size);
  }

  private void close(Opened file) throws FsException {
    nodes.close(file);
  }

  private Opened putLarge() throws FsException {
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    close(file);
    return file;
  }

  /** As ftruncate(2). */
  private void setSize(Opened file, long size) throws FsException {
    setSize(file, size, file.handle());
  }

  /** Empties it as truncate(2). */
  private void truncate(Opened file) throws FsException {
    setSize(file, 0, 0);
  }

  private void setSize(Opened file, long size, long handle) throws FsException {
    nodes.remote.setAttributes(
        file.node().inode(),
        new NewAttributes(null, null, null, size, null, null, handle, false),
        nodes.caller());
  }

  private long writesAsked() {
    return nodes.link.asked.stream().filter("write"::equals).count();
  }

  @Test
  void largeFile_staysHereAndIsReadByAll() throws Exception {
    putLarge();
    assertThat(writesAsked()).isZero();
    assertThat(owner.node("a").attributes().size()).isEqualTo(LARGE.length());
    assertThat(owner.read("a")).isEqualTo(LARGE);
    Opened again = open(A, OutputCalls.O_RDONLY);
    int before = nodes.link.asked.size();
    assertThat(readHere(again, 100)).isEqualTo(LARGE.substring(0, 100));
    assertThat(nodes.link.asked).hasSize(before);
  }

  @Test
  void largeFile_isCopiedToTheSourceByItsNode() throws Exception {
    putLarge();
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + LARGE);
    assertThat(nodes.link.askedOfNode).contains("copy").doesNotContain("read");
    assertThat(owner.read("a")).isEqualTo(LARGE);
  }

  @Test
  void largeFile_thatItsNodeCannotCopy_comesThroughTheOwner() throws Exception {
    putLarge();
    nodes.setSourceAway(new FsException(Errno.EACCES, "squashed"));
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + LARGE);
    assertThat(nodes.link.askedOfNode).contains("read");
  }

  @Test
  void smallFile_isTheOwnersAfterItsClose() throws Exception {
    nodes.put(A, "small");
    assertThat(writesAsked()).isZero();
    assertThat(owner.read("a")).isEqualTo("small");
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 small");
    assertThat(nodes.link.askedOfNode).isEmpty();
  }

  /** Its messages may arrive in another order, and once more. */
  @Test
  void closeThatArrivesAfterTheNextWrite_isNotBelieved() throws Exception {
    Opened file = nodes.create(A);
    write(file, 0, "one");
    long inode = file.node().inode();
    nodes.remote.flush(inode, file.handle(), nodes.caller());
    byte[] late = nodes.link.lastOf("flush");
    write(file, 3, " two"); // Asks first, so the owner knows that it goes on.
    nodes.link.askedOfNode.clear();
    nodes.link.server().answer("flush", late);
    assertThat(nodes.link.askedOfNode).contains("freeze");
    assertThat(owner.node("a").attributes().size()).isEqualTo(7);
    close(file);
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 one two");
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void writeThatArrivesAfterTheClose_opensNothing(boolean isBesideAnother) throws Exception {
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    assertThat(owner.read("a")).isEqualTo(LARGE);
    if (isBesideAnother) {
      nodes.link.beforeOpened = () -> nodes.write(file, LARGE.length(), "!");
      open(A, OutputCalls.O_RDONLY);
    } else {
      nodes.write(file, LARGE.length(), "!");
    }
    byte[] late = nodes.link.copyOf("resume");
    close(file);
    nodes.link.server().answer("resume", late);
    owner.append("a", "?");
    assertThat(owner.read("a")).isEqualTo(LARGE + "!?");
  }

  /** The new process knows only what the node says when it is asked. */
  @Test
  void closeThatArrivesAtTheNextOwner_isNotBelieved() throws Exception {
    Opened file = nodes.create(A);
    write(file, 0, "one");
    nodes.remote.flush(file.node().inode(), file.handle(), nodes.caller());
    byte[] late = nodes.link.lastOf("flush");
    write(file, 3, " two");
    nodes.restartOwner();
    nodes.remote.attributes(WritableFileSystem.ROOT); // It joins the new process.
    nodes.link.askedOfNode.clear();
    nodes.link.server().answer("flush", late);
    assertThat(nodes.link.askedOfNode).contains("freeze");
    assertThat(owner.node("a").attributes().size()).isEqualTo(7);
  }

  @Test
  void closeByAnotherNodeThanTheWriter_saysNothing() throws Exception {
    Opened file = nodes.create(A);
    write(file, 0, "true");
    NodeData.Id id = new NodeData.Id(file.node().inode(), file.generation());
    NodeData.Frozen frozen =
        new NodeData.Frozen(3, 8, Instant.EPOCH, true, ByteBuffer.wrap(new byte[3]));
    Caller other = new Caller(2, 0, 0, 1, 7);
    NodeData.Paused lie = new NodeData.Paused(id, 1, frozen);
    try {
      owner.mount().flushHere(id.inode(), 0, lie, other);
    } catch (FsException e) {
      assertThat(e.errno()).isEqualTo(Errno.EBUSY); // It has not opened the file.
    }
    assertThat(owner.read("a")).isEqualTo("true");
  }

  @Test
  void flushOfAFileThatStaysOpen_leavesItHere() throws Exception {
    // A program that starts another one, or copies a descriptor and closes the first.
    Opened file = nodes.create(A);
    nodes.remote.flush(file.node().inode(), file.handle(), nodes.caller());
    write(file, 0, LARGE);
    assertThat(nodes.link.asked).doesNotContain("write", "flush", "resume");
    nodes.remote.flush(file.node().inode(), file.handle(), nodes.caller());
    write(file, LARGE.length(), "more");
    assertThat(writesAsked()).isZero();
    close(file);
    assertThat(owner.read("a")).isEqualTo(LARGE + "more");
  }

  @Test
  void attributesOfAFileThatIsWrittenHere_areKnownHere() throws Exception {
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    Attributes here = nodes.remote.attributes(file.node().inode()).attributes();
    assertThat(nodes.link.askedOfNode).isEmpty();
    assertThat(here.size()).isEqualTo(LARGE.length());
    assertThat(here).isEqualTo(owner.node("a").attributes());
    owner.chmod("a", 0600);
    write(file, LARGE.length(), "!");
    Attributes later = nodes.remote.attributes(file.node().inode()).attributes();
    assertThat(later.mode() & 07777).isEqualTo(0600);
    assertThat(later.size()).isEqualTo(LARGE.length() + 1);
    close(file);
    assertThat(nodes.remote.attributes(file.node().inode())).isEqualTo(owner.node("a"));
  }

  /** Large writes wait for the source. */
  @Test
  @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void closeOfAKeptFile_doesNotWaitForLargeRequests() throws Exception {
    Opened file = nodes.create(A);
    String text = "abcdefgh".repeat(20_000);
    nodes.write(file, 0, text);
    nodes.link.busyAbove = 1 << 16;
    close(file);
    assertThat(nodes.link.refused).hasValue(1);
    assertThat(owner.read("a")).isEqualTo(text);
  }

  @Test
  void emptyFile_isAtTheSourceAfterItsClose() throws Exception {
    close(nodes.create(A));
    owner.put("b", "content");
    close(open(B, OutputCalls.O_WRONLY | OutputCalls.O_TRUNC));
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 ").containsEntry("b", "file 644 ");
  }

  @Test
  void smallFileThatWasSynced_isSyncedByTheOwnerToo() throws Exception {
    Opened file = nodes.create(A);
    nodes.write(file, 0, "text");
    close(file);
    assertThat(owner.calls.syncCount()).isZero();
    file = nodes.create(B);
    nodes.write(file, 0, "text");
    nodes.remote.fsync(file.node().inode(), file.handle(), false, nodes.caller());
    close(file);
    assertThat(owner.calls.syncCount()).isEqualTo(1);
  }

  @Test
  void fileThatIsBeingWritten_isSeenByOthersAsItIs() throws Exception {
    Opened file = nodes.create(A);
    nodes.write(file, 0, "one");
    assertThat(owner.read("a")).isEqualTo("one");
    nodes.write(file, 3, "two");
    assertThat(owner.node("a").attributes().size()).isEqualTo(6);
    assertThat(owner.read("a")).isEqualTo("onetwo");
    nodes.write(file, 0, "O");
    assertThat(readHere(file, 100)).isEqualTo("Onetwo");
    close(file);
    assertThat(owner.read("a")).isEqualTo("Onetwo");
  }

  @Test
  void fileThatIsWrittenOnAfterAFlush_keepsWhatWasPromised() throws Exception {
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    nodes.remote.flush(file.node().inode(), file.handle(), nodes.caller());
    nodes.write(file, LARGE.length(), "more");
    assertThat(writesAsked()).isZero();
    // What the source was promised must stay: the owner takes the file.
    nodes.write(file, 0, "X");
    assertThat(writesAsked()).isEqualTo(1);
    nodes.write(file, 1, "Y");
    assertThat(readHere(file, 4)).isEqualTo("XYcd");
    owner.mount().step();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + LARGE);
    close(file);
    owner.drainAll();
    String all = "XY" + LARGE.substring(2) + "more";
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + all);
    assertThat(owner.read("a")).isEqualTo(all);
  }

  @Test
  void fileOfANode_canBeWrittenElsewhereAfterwards() throws Exception {
    putLarge();
    owner.append("a", "!");
    assertThat(owner.read("a")).isEqualTo(LARGE + "!");
    Opened again = open(A, OutputCalls.O_RDWR);
    nodes.write(again, 0, "X");
    assertThat(readHere(again, 3)).isEqualTo("Xbc");
    close(again);
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 X" + LARGE.substring(1) + "!");
  }

  @Test
  void fileThatIsEmptied_isKeptHereAnew() throws Exception {
    owner.put("a", "before");
    owner.drainAll();
    Opened file = open(A, OutputCalls.O_RDWR | OutputCalls.O_TRUNC);
    write(file, 0, LARGE);
    close(file);
    assertThat(writesAsked()).isZero();
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + LARGE);
  }

  @Test
  void sizeAndTimes_areChangedWhereTheContentIs() throws Exception {
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    long inode = file.node().inode();
    setSize(file, 2L * MIB - 3);
    Instant old = Instant.ofEpochSecond(1_000_000_000);
    nodes.remote.setAttributes(
        inode, new NewAttributes(null, null, null, null, old, old, 0, false), nodes.caller());
    close(file);
    assertThat(writesAsked()).isZero();
    owner.drainAll();
    assertThat(owner.sourceTree())
        .containsEntry("a", "file 644 " + LARGE.substring(0, 2 * MIB - 3));
    assertThat(owner.node("a").attributes().modificationTime()).isEqualTo(old);
  }

  /** Other nodes compare sizes and times; the clock of the owner is ahead. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void contentOfTheSameSize_hasALaterTime(boolean isReplaced) throws Exception {
    nodes.passedMillis.set(60_000);
    Opened file = nodes.create(A);
    nodes.write(file, 0, "one");
    Instant first = owner.node("a").attributes().modificationTime();
    if (isReplaced) {
      nodes.restartNode();
    }
    nodes.write(file, 0, "two");
    Instant second = owner.node("a").attributes().modificationTime();
    assertThat(second).isAfter(first);
    nodes.write(file, 0, "six");
    assertThat(owner.node("a").attributes().modificationTime()).isAfter(second);
    close(file);
  }

  @Test
  void rename_ofAFileThatIsOpen_takesItsContentAlong() throws Exception {
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    owner.rename("a", "b", 0);
    owner.drainAll();
    assertThat(owner.sourceTree()).containsOnlyKeys("b").containsValue("file 644 " + LARGE);
    nodes.write(file, LARGE.length(), "!");
    close(file);
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("b", "file 644 " + LARGE + "!");
  }

  @Test
  void fileThatStaysOpenAndGrows_arrivesInPieces() throws Exception {
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    owner.mount().announcePieces();
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + LARGE);
    nodes.write(file, LARGE.length(), "more");
    nodes.write(file, 0, "X");
    owner.mount().announcePieces();
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + LARGE);
    close(file);
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 X" + LARGE.substring(1) + "more");
  }

  /** Its disk comes back empty, or the file without its end. */
  @ParameterizedTest
  @ValueSource(ints = {-1, 0, 100})
  void nodeThatComesBackWithLess_leavesWhatTheSourceHas(int left) throws Exception {
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    owner.mount().announcePieces();
    nodes.write(file, LARGE.length(), "more");
    owner.drainAll();
    if (left < 0) {
      nodes.lose(file);
    } else {
      nodes.shorten(left);
    }
    nodes.link.isCut = true;
    owner.mount().leaving(1).run();
    nodes.link.isCut = false;
    nodes.remountNode();
    assertThat(owner.mount().drain(0)).isFalse();
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + LARGE);
    if (left >= 0) {
      assertThat(owner.read("a")).isEqualTo(LARGE);
    }
    DrainStatus status = owner.mount().drainStatus();
    assertThat(status.failures().toString()).contains("path=a", "node2");
  }

  /** The owner has closed the file before, or does so when the node is back. */
  @ParameterizedTest
  @CsvSource({"true,true", "true,false", "false,true", "false,false"})
  void nodeThatComesBackWithNothingOfARewrite_leavesWhatTheSourceHas(boolean isGone, boolean isLate)
      throws Exception {
    owner.put("a", "before");
    owner.drainAll();
    Opened file = openEmptied();
    write(file, 0, LARGE);
    if (isGone) {
      nodes.lose(file);
    } else {
      nodes.shorten(0);
    }
    if (isLate) {
      nodes.link.isCut = true;
      owner.mount().leaving(1).run();
      assertThat(owner.mount().drain(0)).isFalse();
      nodes.link.isCut = false;
    }
    nodes.remountNode();
    Await.until(
        "the loss is reported",
        Duration.ofSeconds(10),
        () -> {
          owner.mount().drain(0);
          owner.drainAll();
          return owner.mount().drainStatus().failures().toString().contains("previous content");
        });
    assertThat(owner.mount().drainStatus().failures().toString()).contains("path=a", "node2");
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 before");
    assertThat(owner.read("a")).isEqualTo("before");
    Opened again = openEmptied();
    write(again, 0, "later");
    close(again);
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 later");
  }

  /** The source may refuse what had been announced before. */
  @ParameterizedTest
  @CsvSource({"true,true", "true,false", "false,true", "false,false"})
  void contentThatANodeHasLost_canBeBegunAnew(boolean isGone, boolean isRefused) throws Exception {
    owner.put("a", "before");
    owner.drainAll();
    Opened file = openEmptied();
    write(file, 0, LARGE);
    if (isRefused) {
      close(file);
      owner.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) throws FsException {
              throw new FsException(Errno.EACCES, call);
            }
          });
      owner.drainAll();
      file = open(A, OutputCalls.O_WRONLY);
      write(file, LARGE.length(), "more");
    }
    if (isGone) {
      nodes.lose(file);
    } else {
      nodes.shorten(0);
    }
    nodes.link.isCut = true;
    owner.mount().leaving(1).run();
    nodes.link.isCut = false;
    nodes.remountNode();
    Opened again = openEmptied();
    write(again, 0, "later");
    if (isRefused) {
      assertErrno(Errno.EACCES, () -> close(again)); // What the source has refused before.
    } else {
      close(again);
    }
    assertThat(owner.read("a")).isEqualTo("later");
    owner.calls.watch(new FakeCalls.Watcher() {});
    owner.drainAll();
    assertThat(owner.sourceTree()).containsOnlyKeys("a").containsEntry("a", "file 644 later");
  }

  /** Its programs still have the file open, which they emptied. */
  @Test
  void nodeThatWasCutOff_hasEmptiedItsFile() throws Exception {
    owner.put("a", "before");
    owner.drainAll();
    Opened file = openEmptied();
    nodes.link.isCut = true;
    owner.mount().leaving(1).run();
    nodes.link.isCut = false;
    nodes.remote.attributes(ROOT);
    owner.mount().drain(0);
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 ");
    assertThat(owner.mount().drainStatus().failures()).isEmpty();
    write(file, 0, "after");
    close(file);
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 after");
  }

  @Test
  void daemonOfTheNode_thatDies_losesNothing() throws Exception {
    putLarge();
    Opened open = nodes.create(B);
    write(open, 0, LARGE);
    nodes.restartNode();
    assertThat(owner.read("a")).isEqualTo(LARGE);
    nodes.write(open, LARGE.length(), "more");
    assertThat(writesAsked()).isZero();
    close(open);
    owner.drainAll();
    assertThat(owner.sourceTree())
        .containsEntry("a", "file 644 " + LARGE)
        .containsEntry("b", "file 644 " + LARGE + "more");
  }

  @Test
  void append_thatADeadDaemonHadMade_isMadeOnce() throws Exception {
    Opened open = nodes.create(A);
    write(open, 0, LARGE);
    nodes.restartNode();
    nodes.remote.write(
        open.node().inode(),
        open.handle(),
        LARGE.length() - 4,
        Driver.bytes("efgh"),
        true,
        false,
        nodes.caller());
    close(open);
    assertThat(owner.read("a")).isEqualTo(LARGE);
  }

  @Test
  void daemonOfTheOwner_thatDies_losesNothing() throws Exception {
    putLarge();
    Opened open = nodes.create(B);
    write(open, 0, LARGE);
    nodes.restartOwner();
    assertThat(owner.node("b").attributes().size()).isEqualTo(LARGE.length());
    nodes.write(open, LARGE.length(), "more");
    close(open);
    assertThat(owner.read("a")).isEqualTo(LARGE);
    owner.drainAll();
    assertThat(owner.sourceTree())
        .containsEntry("a", "file 644 " + LARGE)
        .containsEntry("b", "file 644 " + LARGE + "more");
  }

  @Test
  void nodeThatIsAway_keepsWhatOnlyItHas() throws Exception {
    putLarge();
    Opened open = nodes.create(B);
    write(open, 0, LARGE);
    nodes.link.isCut = true;
    assertErrno(Errno.EIO, () -> owner.read("a"));
    assertThat(owner.mount().step()).isTrue();
    assertThat(owner.node("b").attributes().size()).isZero();
    owner.mount().leaving(1).run();
    assertThat(owner.mount().waiting(10)).contains("a", "b");
    assertThat(owner.mount().drain(0)).isFalse();
    DrainStatus.Away away = Objects.requireNonNull(owner.mount().drainStatus().away());
    assertThat(away.node()).isEqualTo("node2");
    assertThat(away.isOwner()).isFalse();
    assertThat(away.path()).isEqualTo("a");
    assertThat(away.since()).isBetween(Instant.now().minusSeconds(60), Instant.now());
    assertThat(owner.mount().drainStatus().refused()).isZero();
    assertThat(owner.mount().drainStatus().failures()).isEmpty();
    assertThat(owner.mount().attempt()).isTrue();
    away = Objects.requireNonNull(owner.mount().drainStatus().away());
    assertThat(away.path()).isEqualTo("a");
    assertThat(away.changes()).isEqualTo(owner.mount().drainStatus().waitingChanges());
    assertThat(owner.mount().drainStatus().refused()).isZero();
    assertThat(owner.mount().drainStatus().failures()).isEmpty();
    nodes.link.isCut = false;
    nodes.remountNode();
    assertThat(owner.mount().drain(0)).isFalse();
    owner.drainAll();
    assertThat(owner.mount().drain(1000)).isTrue();
    assertThat(owner.sourceTree())
        .containsEntry("a", "file 644 " + LARGE)
        .containsEntry("b", "file 644 " + LARGE);
  }

  /** The source refuses to change modes and to make directories. */
  private void refuseCalls() {
    owner.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("chmod") || call.equals("mkdir")) {
              throw new FsException(Errno.EACCES, call);
            }
          }
        });
  }

  /** Its first content was never recorded. */
  @Test
  void refusedDirectory_inWhichADeadNodeWroteAFile_canBeDropped() throws Exception {
    refuseCalls();
    owner.mkdir("n");
    owner.drainAll();
    Opened file =
        nodes.remote.create(
            owner.node("n").inode(), FileName.of("f"), 0644, OutputCalls.O_WRONLY, nodes.caller());
    nodes.write(file, 0, "content");
    nodes.link.isCut = true;
    owner.mount().leaving(1).run();
    assertThat(owner.mount().drop(FileName.of("n"))).containsExactly("n", "n/f");
    assertThat(owner.tree()).isEqualTo(owner.sourceTree()).isEmpty();
    assertThat(owner.mount().drain(1000)).isTrue();
  }

  /** Nothing will ever close what a dead node was writing. */
  @ParameterizedTest
  @ValueSource(strings = {"a", ""})
  void refusedChange_ofAFileThatADeadNodeWasWriting_canBeDropped(String path) throws Exception {
    owner.put("a", "before");
    owner.drainAll();
    refuseCalls();
    owner.mkdir("n");
    owner.chmod("a", 0600);
    owner.drainAll();
    Opened file = open(A, OutputCalls.O_WRONLY | OutputCalls.O_TRUNC);
    nodes.write(file, 0, "after");
    assertThatThrownBy(() -> owner.mount().drop(FileName.of("")))
        .hasMessage("EBUSY: a program is using a");
    nodes.link.isCut = true;
    owner.mount().leaving(1).run();
    assertThat(owner.mount().drop(FileName.of(path))).contains("a");
    assertThat(owner.read("a")).isEqualTo("before");
    assertThat(owner.mount().drop(FileName.of(""))).doesNotContain("a");
    assertThat(owner.tree()).isEqualTo(owner.sourceTree()).containsOnlyKeys("a");
    assertThat(owner.mount().drain(1000)).isTrue();
  }

  @Test
  void nodeThatIsBack_isWaitedForAgain() throws Exception {
    putLarge();
    nodes.link.isCut = true;
    assertErrno(Errno.EIO, () -> owner.read("a"));
    nodes.link.isCut = false;
    nodes.remountNode();
    Thread.sleep(200); // Longer than the owner waits for a node.
    nodes.link.lostRequestsToNode = 1;
    assertThat(owner.read("a")).isEqualTo(LARGE);
  }

  @Test
  void nodeThatIsAway_holdsUpNoOtherFile_howeverManyItHas() throws Exception {
    for (int i = 0; i < 20; i++) {
      Opened file = nodes.create(FileName.of("n" + i));
      write(file, 0, LARGE);
      close(file);
    }
    nodes.link.isCut = true;
    owner.put("free", "content");
    owner.drainAll();
    assertThat(owner.sourceTree()).containsOnlyKeys("free");
  }

  @Test
  void nodeThatIsAway_withTwoContentsOfAFile_leavesNothingWhenItIsBack() throws Exception {
    putLarge();
    Opened again = open(A, OutputCalls.O_WRONLY | OutputCalls.O_APPEND);
    nodes.write(again, LARGE.length(), "more");
    close(again);
    nodes.link.isCut = true;
    owner.drainAll();
    nodes.link.isCut = false;
    nodes.remountNode();
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + LARGE + "more");
    assertThat(owner.mount().drainStatus().dirtyFiles()).isZero();
    assertThat(owner.mount().drainStatus().dirtyBytes()).isZero();
  }

  /** The owner's next process does not know what the node had open, whether it was given up. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void nodeThatIsAway_isNamedByTheNextOwnerToo(boolean isGivenUp) throws Exception {
    Opened open = nodes.create(B);
    write(open, 0, LARGE);
    nodes.link.isCut = true;
    if (isGivenUp) {
      owner.mount().leaving(1).run();
    }
    nodes.restartOwner();
    assertThat(owner.mount().drain(0)).isFalse();
    assertThat(owner.mount().drainStatus().waitingChanges()).isEqualTo(1);
    assertThat(owner.mount().waiting(10)).containsExactly("b");
    nodes.passedMillis.set(60_000);
    assertThat(owner.mount().drain(0)).isFalse();
    DrainStatus.Away away = Objects.requireNonNull(owner.mount().drainStatus().away());
    assertThat(away.node()).isEqualTo("node2");
    assertThat(away.path()).isEqualTo("b");
    assertThat(away.changes()).isEqualTo(1);
    nodes.link.isCut = false;
    nodes.remountNode();
    assertThat(owner.mount().drain(0)).isFalse();
    owner.drainAll();
    assertThat(owner.mount().drain(1000)).isTrue();
    assertThat(owner.sourceTree()).containsEntry("b", "file 644 " + LARGE);
    owner.append("b", "!");
  }

  @Test
  void fileThatANodeWrites_whileTheOwnerIsReplaced_isNotClosed() throws Exception {
    Opened open = nodes.create(B);
    write(open, 0, LARGE);
    nodes.restartOwner();
    assertThat(owner.mount().drain(0)).isFalse();
    nodes.passedMillis.set(25_000);
    assertThat(owner.mount().drain(0)).isFalse();
    write(open, 1, "X");
    nodes.passedMillis.set(60_000);
    assertThat(owner.mount().drain(0)).isTrue();
    owner.drainAll();
    assertThat(owner.sourceTree()).doesNotContainKey("b");
    close(open);
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("b", "file 644 aX" + LARGE.substring(2));
  }

  @Test
  void fileOfANodeThatIsAway_canBeRemoved() throws Exception {
    putLarge();
    owner.put("b", "text");
    nodes.link.isCut = true;
    assertThat(owner.mount().step()).isTrue();
    owner.unlink("a");
    owner.drainAll();
    assertThat(owner.sourceTree()).containsOnlyKeys("b");
  }

  /** Changes of other files in between do not keep the removal back. */
  @Test
  void fileOfANodeThatIsAway_canBeRemoved_afterOtherChanges() throws Exception {
    putLarge();
    nodes.link.isCut = true;
    owner.drainAll();
    owner.put("b", "text");
    owner.put("c", "text");
    owner.chmod("b", 0600);
    owner.unlink("a");
    owner.drainAll();
    assertThat(owner.sourceTree()).containsOnlyKeys("b", "c");
    assertThat(owner.mount().drain(1000)).isTrue();
  }

  @Test
  void filesForAnotherOwner_areLeftAlone() throws Exception {
    Path place = directory.resolve("node");
    Path kept = place.resolve("of-12345678").resolve("00");
    Files.createDirectories(kept);
    List<Place> places = List.of(new Place("ssd", place, 1, 0));
    assertThat(NodeFiles.left(places, "")).isNull();
    Files.writeString(kept.resolve("a.b"), "text");
    assertThat(NodeFiles.left(places, "12345678")).isNull();
    assertThat(NodeFiles.left(places, "")).isEqualTo(place.resolve("of-12345678"));
    assertErrno(Errno.EEXIST, () -> nodes.remountNode());
    assertThat(kept.resolve("a.b")).hasContent("text");
  }

  /** Its state was lost, or its host has another name. */
  @Test
  void filesOfANodeWithAnotherId_areServedByIt() throws Exception {
    putLarge();
    Opened open = nodes.create(B);
    write(open, 0, LARGE);
    nodes.link.member = new UUID(3, 4);
    nodes.remountNode();
    nodes.tidy();
    assertThat(nodes.keptCount()).isEqualTo(2);
    assertThat(owner.read("a")).isEqualTo(LARGE);
    owner.mount().leaving(1).run();
    owner.drainAll();
    assertThat(owner.sourceTree())
        .containsEntry("a", "file 644 " + LARGE)
        .containsEntry("b", "file 644 " + LARGE);
    nodes.tidy();
    assertThat(nodes.keptCount()).isZero();
  }

  @Test
  void nodeThatTheOwnerCannotReach_mayNotWriteForLong() throws Exception {
    nodes.joinAgain(100);
    Opened file = nodes.create(A);
    nodes.write(file, 0, "one");
    nodes.link.isCut = true;
    assertErrno(Errno.EIO, () -> nodes.remote.mkdir(ROOT, B, 0755, nodes.caller()));
    assertErrno(Errno.EIO, () -> nodes.write(file, 3, "two"));
    assertErrno(Errno.EIO, () -> setSize(file, 1));
    assertThat(readHere(file, 100)).isEqualTo("one");
    nodes.link.isCut = false;
    nodes.remote.mkdir(ROOT, B, 0755, nodes.caller());
    nodes.write(file, 3, "two");
    close(file);
    assertThat(owner.read("a")).isEqualTo("onetwo");
  }

  @Test
  void writerThatTheOwnerGaveUp_mustAskAgain() throws Exception {
    long[] now = {1};
    OwnerServer server = new OwnerServer(owner.mount(), () -> now[0]);
    nodes.serve(server);
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    server.present(Set.of());
    now[0] += 31_000_000_000L;
    server.present(Set.of());
    Await.until("the file is closed", () -> owner.mount().waiting(1).contains("a"));
    owner.append("a", "!");
    nodes.write(file, 0, "X");
    assertThat(owner.read("a")).isEqualTo("X" + LARGE.substring(1) + "!");
    assertThat(writesAsked()).isEqualTo(1);
  }

  /** The owner could not reach it when it ended the session. */
  @Test
  void writerWhoseChangesWereDropped_mustAskAgain() throws Exception {
    long[] now = {1};
    OwnerServer server = new OwnerServer(owner.mount(), () -> now[0]);
    nodes.serve(server);
    owner.put("a", "before");
    owner.drainAll();
    refuseCalls();
    owner.chmod("a", 0600);
    owner.drainAll();
    Opened file = openEmptied();
    nodes.write(file, 0, "after");
    nodes.link.isCut = true;
    server.present(Set.of());
    now[0] += 31_000_000_000L;
    server.present(Set.of());
    Await.until("the changes are dropped", this::isDropped);
    nodes.link.isCut = false;
    nodes.remote.attributes(ROOT);
    nodes.write(file, 0, "later");
    close(file);
    assertThat(owner.read("a")).isEqualTo("latere");
  }

  private boolean isDropped() {
    try {
      return owner.mount().drop(FileName.of("")).contains("a");
    } catch (FsException e) {
      return false;
    }
  }

  /** Another node may have written the file meanwhile. */
  @Test
  void nodeThatWasCutOff_mayNotWriteBeforeItHasJoined() throws Exception {
    nodes.joinAgain(100);
    Opened file = nodes.create(A);
    nodes.write(file, 0, "one");
    nodes.link.isCut = true;
    assertErrno(Errno.EIO, () -> nodes.remote.mkdir(ROOT, B, 0755, nodes.caller()));
    nodes.serve(new OwnerServer(owner.mount()));
    boolean[] hasJoined = {false};
    nodes.link.beforeJoin =
        () -> {
          assertErrno(Errno.EIO, () -> nodes.write(file, 3, "two"));
          hasJoined[0] = true;
        };
    nodes.link.isCut = false;
    nodes.remote.attributes(ROOT);
    assertThat(hasJoined[0]).isTrue();
    nodes.write(file, 3, "two");
    close(file);
    assertThat(owner.read("a")).isEqualTo("onetwo");
  }

  @Test
  void nodeWithoutRoom_letsTheOwnerWrite() throws Exception {
    nodes.setCapacity(3L * MIB);
    nodes.restartNode();
    Opened file = nodes.create(A);
    String much = LARGE + LARGE;
    write(file, 0, much);
    assertThat(writesAsked()).isEqualTo(1);
    close(file);
    assertThat(owner.read("a")).isEqualTo(much);
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + much);
  }

  @ParameterizedTest
  @EnumSource(names = {"ENOSPC", "EDQUOT", "EIO", "EROFS"})
  void nodeWhoseDiskTakesNothingMore_letsTheOwnerWrite(Errno errno) throws Exception {
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    nodes.refuse(errno);
    Caller caller = nodes.caller();
    nodes.remote.write(
        file.node().inode(), file.handle(), 0, Driver.bytes("appended"), true, false, caller);
    Opened other = nodes.create(B);
    nodes.write(other, 0, "other");
    close(file);
    close(other);
    assertThat(owner.read("a")).isEqualTo(LARGE + "appended");
    assertThat(owner.read("b")).isEqualTo("other");
    owner.drainAll();
    assertThat(owner.sourceTree()).isEqualTo(owner.tree());
  }

  /** Its owner has a copy of what was synced, and loses its power before the tables say so. */
  @Test
  void syncedFile_thatTheOwnerGoesOnWith_survivesAPowerCutOfTheOwner() throws Exception {
    owner.keepSynced();
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    nodes.remote.fsync(file.node().inode(), file.handle(), false, nodes.caller());
    nodes.refuse(Errno.ENOSPC);
    nodes.write(file, LARGE.length(), "appended");
    nodes.tidy();
    nodes.cutOwner();
    nodes.remote.attributes(ROOT);
    assertThat(owner.read("a")).startsWith(LARGE);
  }

  @Test
  void fileThatIsReplacedWhileItIsOpen_isReadOn() throws Exception {
    Opened first = putLarge();
    Opened open = open(A, OutputCalls.O_RDONLY);
    nodes.put(B, "other");
    owner.rename("b", "a", 0);
    owner.drainAll();
    nodes.tidy();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 other");
    assertThat(owner.read(first.node().inode())).isEqualTo(LARGE);
    assertThat(readHere(open, 8)).isEqualTo("abcdefgh");
  }

  @Test
  void fileThatItsNodeRemovesDuringARead_isReadFromTheSource() throws Exception {
    Opened first = putLarge();
    nodes.link.beforeAnswer =
        () -> {
          owner.drainAll();
          nodes.tidy();
        };
    assertThat(owner.read(first.node().inode())).isEqualTo(LARGE);
    assertThat(nodes.keptCount()).isZero();
  }

  @Test
  void fileThatItsNodeHasLost_isNotTakenForEmpty() throws Exception {
    Opened first = putLarge();
    nodes.put(B, "later");
    nodes.loseFiles();
    assertErrno(Errno.EIO, () -> owner.read(first.node().inode()));
    assertErrno(Errno.EIO, () -> owner.append("a", "!"));
    // The disk of the node may not be mounted: only the user knows.
    assertThat(owner.mount().attempt()).isTrue();
    assertThat(owner.mount().drainStatus().failures().get(0))
        .hasToString(
            "Failure[path=a, reason=node2 does not have what was written there; mount its disk,"
                + " or remove the file, cause=null, isAside=false, behind=0]");
    owner.drainAll();
    assertThat(owner.sourceTree()).containsOnlyKeys("b");
    owner.unlink("a");
    owner.drainAll();
    assertThat(owner.sourceTree()).containsOnlyKeys("b");
  }

  @Test
  void fileThatAPowerCutOfItsNodeShortened_hasItsFirstBytes() throws Exception {
    putLarge();
    nodes.shorten(LARGE.length() - 8);
    nodes.put(B, "later");
    owner.drainAll();
    assertThat(owner.sourceTree())
        .containsEntry("a", "file 644 " + LARGE.substring(8))
        .containsEntry("b", "file 644 later");
    assertThat(owner.read("a")).isEqualTo(LARGE.substring(8));
    assertThat(owner.mount().drainStatus().failures().toString()).contains("bytes are left");
  }

  @Test
  void fileThatAPowerCutOfItsNodeShortened_isNotFilledWithZeros() throws Exception {
    putLarge();
    nodes.shorten(LARGE.length() - 8);
    assertErrno(Errno.EIO, () -> owner.append("a", "!"));
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + LARGE.substring(8));
    assertThat(owner.mount().drainStatus().failures().toString()).contains("bytes are left");
  }

  /** It was written before the node was mounted again, but is open now. */
  @ParameterizedTest
  @ValueSource(ints = {0, 100})
  void fileOfAnEarlierMount_thatIsCutByAProgram_isNotTakenForALostOne(int size) throws Exception {
    putLarge();
    nodes.remountNode();
    Opened file = open(A, OutputCalls.O_RDWR);
    nodes.write(file, LARGE.length(), "!");
    owner.drainAll();
    nodes.write(file, 0, "X");
    setSize(file, size, file.handle());
    assertThat(writesAsked()).isZero();
    close(file);
    owner.drainAll();
    String wanted = ("X" + LARGE.substring(1)).substring(0, size);
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + wanted);
    assertThat(owner.mount().drainStatus().failures()).isEmpty();
  }

  @Test
  void fileThatAPowerCutOfItsNodeShortened_isNotWrittenOnWithAGap() throws Exception {
    putLarge();
    nodes.shorten(LARGE.length() - 8);
    nodes.remountNode();
    Opened file = open(A, OutputCalls.O_RDWR);
    assertErrno(Errno.EIO, () -> nodes.write(file, LARGE.length(), "!"));
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + LARGE.substring(8));
    assertThat(owner.mount().drainStatus().failures().toString()).contains("bytes are left");
  }

  @Test
  void fileThatIsRemovedAfterItIsAtTheSource_isReadOn() throws Exception {
    putLarge();
    owner.drainAll();
    Opened open = open(A, OutputCalls.O_RDONLY);
    owner.unlink("a");
    owner.drainAll();
    assertThat(readHere(open, 8)).isEqualTo("abcdefgh");
  }

  @Test
  void fileThatReachesTheSourceWhileItsNodeAsksToGoOn_keepsAllThatIsWritten() throws Exception {
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    nodes.remote.flush(file.node().inode(), file.handle(), nodes.caller());
    nodes.restartOwner();
    nodes.link.beforeFinding = owner::drainAll;
    nodes.write(file, LARGE.length(), "more");
    close(file);
    assertThat(owner.read("a")).isEqualTo(LARGE + "more");
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + LARGE + "more");
  }

  @Test
  void emptyFileThatIsOpenedToBeRead_isNotMadeHere() throws Exception {
    Opened file = nodes.create(A);
    nodes.lose(file);
    Opened again = open(A, OutputCalls.O_RDONLY);
    assertThat(nodes.keptCount()).isZero();
    assertThat(readHere(again, 10)).isEmpty();
    nodes.write(file, 0, "text");
    close(file);
    assertThat(owner.read("a")).isEqualTo("text");
  }

  /** Another thread may have looked the file up before one gave it to the owner. */
  @Test
  void fileThatTheOwnerHas_isChangedAndReadThere() throws Exception {
    NodeFiles files =
        new NodeFiles(
            List.of(new Place("ssd", directory.resolve("other"), 1L << 40, 0)),
            Driver.SOURCE,
            new FakeCalls(Driver.SOURCE),
            InstantSource.system());
    files.use("12345678");
    KeptFile file = Objects.requireNonNull(files.make(5, 6));
    assertThat(file.write(0, Driver.bytes("text"), false, false)).isTrue();
    files.giveUp(file);
    file.release();
    assertThat(file.write(0, Driver.bytes("text"), false, false)).isFalse();
    assertThat(file.truncate(0)).isFalse();
    assertThat(file.allocate(0, 0, 10)).isFalse();
    assertThat(file.read(ByteBuffer.allocateDirect(10), 0)).isEqualTo(-1);
    assertThat(files.find(5, 6)).isSameAs(file);
    assertThat(files.latest(5)).isNull();
    files.close();
  }

  @Test
  void files_goWhenNobodyNeedsThem() throws Exception {
    putLarge();
    Opened removed = nodes.create(B);
    write(removed, 0, LARGE);
    owner.unlink("b");
    nodes.tidy();
    assertThat(nodes.keptCount()).isEqualTo(2);
    assertThat(readHere(removed, 8)).isEqualTo("abcdefgh");
    close(removed);
    nodes.remote.forget(removed.node().inode(), 1);
    owner.drainAll();
    nodes.remote.drain(0);
    nodes.tidy();
    assertThat(nodes.keptCount()).isZero();
  }

  @Test
  void fsync_reachesTheDataFile() throws Exception {
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    nodes.remote.fsync(file.node().inode(), file.handle(), false, nodes.caller());
    assertThat(nodes.syncs()).isPositive();
    write(file, LARGE.length(), "!");
    assertThat(writesAsked()).isZero();
    close(file);
  }

  @Test
  void setIdBits_areClearedByAWrite() throws Exception {
    Opened file = nodes.create(A);
    nodes.write(file, 0, "text");
    nodes.remote.setAttributes(
        file.node().inode(),
        new NewAttributes(04755, null, null, null, null, null, 0, false),
        nodes.caller());
    nodes.remote.write(
        file.node().inode(),
        file.handle(),
        4,
        Driver.bytes("!"),
        false,
        true,
        new WritableFileSystem.Caller(0, 7, 7, 1));
    assertThat(owner.node("a").attributes().mode() & 07777).isEqualTo(0755);
    assertThat(owner.read("a")).isEqualTo("text!");
  }

  private void punch(Opened file, long length) throws FsException {
    int mode = OutputCalls.FALLOC_PUNCH_HOLE | OutputCalls.FALLOC_KEEP_SIZE;
    nodes.remote.allocate(file.node().inode(), file.handle(), mode, 0, length, nodes.caller());
  }

  private void setTimes(Opened file, Instant time) throws FsException {
    nodes.remote.setAttributes(
        file.node().inode(),
        new NewAttributes(null, null, null, null, time, time, file.handle(), false),
        nodes.caller());
  }

  @Test
  void change_thatTheOwnerMakesForAProgram_isReadByIt() throws Exception {
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    punch(file, 4096);
    assertThat(readHere(file, 4)).isEqualTo("\0\0\0\0");
    Opened copy = nodes.create(B);
    nodes.remote.copyRange(
        file.node().inode(),
        file.handle(),
        4096,
        copy.node().inode(),
        copy.handle(),
        0,
        8,
        nodes.caller());
    assertThat(readHere(copy, 100)).isEqualTo("abcdefgh");
    close(file);
    close(copy);
  }

  @Test
  void change_thatTheOwnerMakesForAProgram_isReadByOthersOfTheNode() throws Exception {
    putLarge();
    Opened reader = open(A, OutputCalls.O_RDONLY);
    assertThat(readHere(reader, 3)).isEqualTo("abc");
    Opened writer = open(A, OutputCalls.O_RDWR);
    punch(writer, 1);
    assertThat(readHere(reader, 3)).isEqualTo("\0bc");
    close(writer);
  }

  @Test
  void truncation_isSeenByReadersOfTheNode() throws Exception {
    putLarge();
    Opened reader = open(A, OutputCalls.O_RDONLY);
    Opened writer = open(A, OutputCalls.O_RDWR | OutputCalls.O_TRUNC);
    assertThat(readHere(reader, 3)).isEmpty();
    nodes.write(writer, 0, "new");
    assertThat(readHere(reader, 3)).isEqualTo("new");
    close(writer);
    truncate(writer);
    assertThat(readHere(reader, 3)).isEmpty();
  }

  /** The data file has gone, but a reader has it open. */
  @Test
  void writeAfterTheSourceHasAFile_isSeenByReadersOfTheNode() throws Exception {
    putLarge();
    Opened reader = open(A, OutputCalls.O_RDONLY);
    owner.drainAll();
    nodes.remote.drain(0);
    nodes.tidy();
    Opened writer = open(A, OutputCalls.O_RDWR);
    nodes.write(writer, 0, "X");
    assertThat(readHere(reader, 3)).isEqualTo("Xbc");
    close(writer);
  }

  @Test
  void changeWhileAnOpenIsAnswered_isSeen() throws Exception {
    putLarge();
    Opened writer = open(A, OutputCalls.O_RDWR);
    nodes.link.beforeOpened = () -> punch(writer, 1);
    Opened reader = open(A, OutputCalls.O_RDONLY);
    assertThat(readHere(reader, 3)).isEqualTo("\0bc");
    close(writer);
  }

  @Test
  void changeOnAnotherNode_isSeenWithTheAttributes() throws Exception {
    putLarge();
    Opened reader = open(A, OutputCalls.O_RDONLY);
    owner.overwrite("a", 0, "X");
    nodes.remote.attributes(reader.node().inode());
    assertThat(readHere(reader, 3)).isEqualTo("Xbc");
  }

  @Test
  void changeOnAnotherNode_isSeenByTheNextOpen() throws Exception {
    putLarge();
    Opened reader = open(A, OutputCalls.O_RDONLY);
    owner.drainAll();
    nodes.tidy();
    owner.overwrite("a", 0, "X");
    Opened next = open(A, OutputCalls.O_RDONLY);
    assertThat(readHere(next, 3)).isEqualTo("Xbc");
    // Both share the kernel's pages.
    assertThat(readHere(reader, 3)).isEqualTo("Xbc");
  }

  /** The owner goes on with the content in its own file. */
  @Test
  void changeOnAnotherNode_ofASmallFile_isSeenWithTheAttributes() throws Exception {
    Opened file = nodes.create(A);
    nodes.write(file, 0, "small");
    Opened reader = open(A, OutputCalls.O_RDONLY);
    close(file);
    owner.append("a", "!");
    nodes.remote.attributes(reader.node().inode());
    assertThat(readHere(reader, 100)).isEqualTo("small!");
  }

  @Test
  void timesThatAreSet_leaveTheContentHere() throws Exception {
    Instant old = Instant.ofEpochSecond(1_000_000_000);
    Opened file = nodes.create(A);
    write(file, 0, LARGE);
    setTimes(file, old);
    assertThat(nodes.remote.attributes(file.node().inode()).attributes().modificationTime())
        .isEqualTo(old);
    assertThat(readHere(file, 3)).isEqualTo("abc");
    close(file);
    setTimes(file, old.plusSeconds(1));
    Opened again = open(A, OutputCalls.O_RDONLY);
    nodes.remote.attributes(file.node().inode());
    assertThat(readHere(again, 3)).isEqualTo("abc");
    assertThat(nodes.link.asked).doesNotContain("read", "write");
  }

  @Test
  void timesOfAFileThatItsNodeHasNotMade_areSet() throws Exception {
    Instant old = Instant.ofEpochSecond(1_000_000_000);
    Opened file = nodes.create(A);
    nodes.lose(file);
    setTimes(file, old);
    assertThat(owner.node("a").attributes().modificationTime()).isEqualTo(old);
    close(file);
    owner.drainAll();
    assertThat(owner.node("a").attributes().modificationTime()).isEqualTo(old);
  }

  // ---- answers that are overtaken

  private Opened openEmptied() throws FsException {
    return open(A, OutputCalls.O_RDWR | OutputCalls.O_TRUNC);
  }

  @Test
  void openThatAnotherOneOvertakes_losesNothing() throws Exception {
    owner.put("a", "before");
    Opened[] second = new Opened[1];
    nodes.link.beforeOpened = () -> second[0] = openEmptied();
    Opened first = openEmptied();
    nodes.write(first, 0, "one");
    assertThat(readHere(first, 3)).isEqualTo("one");
    assertThat(readHere(second[0], 3)).isEqualTo("one");
    close(first);
    nodes.write(second[0], 3, "two");
    assertThat(readHere(first, 6)).isEqualTo("onetwo");
    close(second[0]);
    nodes.tidy();
    assertThat(owner.read("a")).isEqualTo("onetwo");
  }

  @Test
  void openThatATruncationOvertakes_losesNothing() throws Exception {
    owner.put("a", "before");
    Opened other = open(A, OutputCalls.O_RDWR);
    nodes.link.beforeOpened = () -> truncate(other);
    Opened file = openEmptied();
    nodes.write(other, 0, "other");
    assertThat(readHere(file, 5)).isEqualTo("other");
    nodes.write(file, 0, "one");
    assertThat(readHere(file, 5)).isEqualTo("oneer");
    close(file);
    close(other);
    nodes.tidy();
    assertThat(owner.read("a")).isEqualTo("oneer");
  }

  @Test
  void openThatAQuestionOvertakes_leavesTheContentHere() throws Exception {
    owner.put("a", "before");
    nodes.link.beforeOpened = () -> assertThat(owner.node("a").attributes().size()).isZero();
    Opened file = openEmptied();
    write(file, 0, LARGE);
    assertThat(owner.node("a").attributes().size()).isEqualTo(LARGE.length());
    close(file);
    assertThat(writesAsked()).isZero();
    assertThat(owner.read("a")).isEqualTo(LARGE);
  }

  @Test
  void targetWhoseStatusFails_isClosed() throws Exception {
    putLarge();
    int before = nodes.openCount();
    nodes.setStatusFailing();
    owner.drainAll();
    assertThat(owner.sourceTree()).containsEntry("a", "file 644 " + LARGE);
    assertThat(nodes.openCount()).isEqualTo(before);
  }
}
