package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.KernelSession.Answer;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class BackingFilesTest {
  private KernelFixture fixture;
  private final Kernel kernel = new Kernel();
  private BackingFiles files;
  private long small;
  private long large;

  @SuppressWarnings("NullAway.Init")
  BackingFilesTest() {}

  /** Returns ids like the kernel, and knows which are registered. */
  static final class Kernel implements BackingFiles.Registry {
    private final AtomicInteger last = new AtomicInteger();
    final Set<Integer> registered = ConcurrentHashMap.newKeySet();
    volatile @Nullable Errno refusal;

    @Override
    public int register(Path file, long size) throws FsException {
      Errno errno = refusal;
      if (errno != null) {
        throw new FsException(errno, file.toString());
      }
      if (file.toFile().length() != size) {
        return BackingFiles.NONE;
      }
      int id = last.incrementAndGet();
      registered.add(id);
      return id;
    }

    @Override
    public int register(int descriptor, long size) throws FsException {
      return register(Path.of("/proc/self/fd/" + descriptor), size);
    }

    @Override
    public boolean isWhole(Path file, long size) {
      return file.toFile().length() == size;
    }

    @Override
    public void unregister(int id) {
      assertThat(registered.remove(id)).as("id %d was registered", id).isTrue();
    }
  }

  @BeforeEach
  void open(@TempDir Path directory) throws Exception {
    fixture = new KernelFixture(directory);
    files = new BackingFiles(fixture.fileSystem, kernel, null, null, 2);
    small = fixture.inode("small");
    large = fixture.inode("large");
    stage(small);
    stage(large);
  }

  @AfterEach
  void close() {
    files.close();
    assertThat(kernel.registered).isEmpty();
    fixture.close();
  }

  private void stage(long number) throws FsException {
    try (KernelSession session = fixture.session()) {
      session.ask(Opcode.READ, number, KernelMessages.read(0, 4096));
    }
    fixture.awaitStaged();
  }

  @Test
  void open_ofAStagedFile_isRegisteredOnceAndKept() throws Exception {
    int id = files.open(small, 0, 0);
    assertThat(id).isPositive();
    assertThat(files.open(small, 0, 0)).isEqualTo(id);
    files.release(small, 0);
    files.release(small, 0);
    assertThat(files.open(small, 0, 0)).isEqualTo(id);
    assertThat(kernel.registered).containsExactly(id);
    files.release(small, 0);
  }

  @Test
  void open_ofACopyThatWasCutShort_isThroughUs() throws Exception {
    int id = files.open(large, 0, 0);
    assertThat(id).isPositive();
    Path copy = Objects.requireNonNull(fixture.fileSystem.copyFile(large));
    try (FileChannel file = FileChannel.open(copy, StandardOpenOption.WRITE)) {
      file.truncate(10);
    }
    assertThat(files.open(large, 0, 0)).as("the kernel wants all opens to agree").isEqualTo(id);
    files.release(large, 0);
    files.release(large, 0);
    assertThat(files.open(large, 0, 0)).isEqualTo(BackingFiles.NONE);
    assertThat(kernel.registered).isEmpty();
    files.release(large, 0);
  }

  @Test
  void open_ofLargeCopies_isPassedThroughFromTheFirst_untilMostAreSmall() throws Exception {
    BackingFiles auto = choosing(1L << 40);
    try (KernelSession session = session(auto)) {
      assertThat(auto.readMode()).isEqualTo(ReadMode.AUTO);
      openAndRelease(session, large, KernelProtocol.FOPEN_PASSTHROUGH);
      assertThat(auto.readMode()).isEqualTo(ReadMode.PASSTHROUGH);
      assertThat(auto.readModeReason()).contains("736 KiB of each copy on average");
      openAndRelease(session, small, KernelProtocol.FOPEN_PASSTHROUGH);
      for (long entry : stageEntries(3)) {
        openAndRelease(session, entry, KernelProtocol.FOPEN_KEEP_CACHE);
      }
      assertThat(auto.readMode()).isEqualTo(ReadMode.AUTO);
      openAndRelease(session, large, KernelProtocol.FOPEN_PASSTHROUGH);
    } finally {
      auto.close();
    }
  }

  /** A job may read a few files repeatedly: they are not its dataset. */
  @Test
  void open_ofFewSmallCopiesOften_choosesNothing() throws Exception {
    BackingFiles auto = choosing(1L << 40);
    try (KernelSession session = session(auto)) {
      stageEntries(3);
      for (int i = 0; i < 200; i++) {
        openAndRelease(session, small, KernelProtocol.FOPEN_KEEP_CACHE);
      }
      assertThat(auto.readMode()).isEqualTo(ReadMode.AUTO);
    } finally {
      auto.close();
    }
  }

  @Test
  void open_ofCopiesThatFitIntoMemory_isLeftToTheKernel() throws Exception {
    List<Long> entries = stageEntries(100);
    BackingFiles auto = choosing(1L << 40);
    try (KernelSession session = session(auto)) {
      for (long entry : entries.subList(0, 99)) {
        openAndRelease(session, entry, KernelProtocol.FOPEN_KEEP_CACHE);
      }
      assertThat(auto.readMode()).isEqualTo(ReadMode.AUTO);
      assertThat(session.ask(Opcode.OPEN, entries.get(99), new byte[8]).errno())
          .isEqualTo(Errno.ENOSYS);
      assertThat(auto.readMode()).isEqualTo(ReadMode.PAGE_CACHE);
      assertThat(auto.readModeReason()).contains("102 copies");
    } finally {
      auto.close();
    }
    assertThat(kernel.registered).isEmpty();
  }

  /** The kernel refuses a file that is open in passthrough and then opened without the daemon. */
  @Test
  void open_inPageCacheMode_isLeftToTheKernelOnceNothingIsOpenInPassthrough() throws Exception {
    List<Long> entries = stageEntries(100);
    BackingFiles auto = choosing(1L << 40);
    try (KernelSession session = session(auto)) {
      assertThat(opened(session, large)).isEqualTo(KernelProtocol.FOPEN_PASSTHROUGH);
      for (long entry : entries) {
        openAndRelease(session, entry, KernelProtocol.FOPEN_KEEP_CACHE);
      }
      assertThat(auto.readMode()).isEqualTo(ReadMode.PAGE_CACHE);
      openAndRelease(session, entries.get(0), KernelProtocol.FOPEN_KEEP_CACHE);
      openAndRelease(session, large, KernelProtocol.FOPEN_PASSTHROUGH);
      session.ask(Opcode.RELEASE, large, new byte[24]);
      assertThat(session.ask(Opcode.OPEN, large, new byte[8]).errno()).isEqualTo(Errno.ENOSYS);
      assertThat(kernel.registered).as("those that were idle").isEmpty();
    } finally {
      auto.close();
    }
  }

  private List<Long> stageEntries(int count) throws Exception {
    List<Long> entries = new ArrayList<>();
    for (int i = 1; i <= count; i++) {
      long entry = fixture.inode("directory", "e" + i + "x".repeat(i % 200));
      stage(entry);
      entries.add(entry);
    }
    return entries;
  }

  private static void openAndRelease(KernelSession session, long number, int expected) {
    assertThat(opened(session, number)).isEqualTo(expected);
    session.ask(Opcode.RELEASE, number, new byte[24]);
  }

  private BackingFiles choosing(long memory) {
    ReadModeChoice choice = new ReadModeChoice(fixture.fileSystem, reader -> memory);
    return new BackingFiles(fixture.fileSystem, kernel, null, choice, 2);
  }

  private KernelSession session(BackingFiles backing) {
    return new KernelSession(
        new KernelOperations(fixture.fileSystem, 1000, backing, -1, 64, AccessRule.MODES));
  }

  /** The flags of an answer to OPEN. */
  private static int opened(KernelSession session, long number) {
    return session.ask(Opcode.OPEN, number, new byte[8]).body().getInt(8);
  }

  @Test
  void open_whileItsCopyGoes_staysOnTheSameFile() throws Exception {
    int id = files.open(small, 0, 0);
    fixture.copies.drop(small);
    assertThat(files.open(small, 0, 0)).isEqualTo(id);
    assertThat(kernel.registered).as("looked up at every open").contains(id);
    files.release(small, 0);
    assertThat(kernel.registered).contains(id);
    files.release(small, 0);
    assertThat(kernel.registered).doesNotContain(id);
    assertThat(files.open(small, 0, 0)).isEqualTo(BackingFiles.NONE);
    files.release(small, 0);
  }

  @Test
  void copy_goneWhileNotOpen_isUnregisteredAtOnce() throws Exception {
    files.open(small, 0, 0);
    files.release(small, 0);
    fixture.copies.drop(small);
    assertThat(kernel.registered).isEmpty();
  }

  @Test
  void open_throughUs_staysSoUntilAllAreClosed() throws Exception {
    fixture.copies.drop(small);
    assertThat(files.open(small, 0, 0)).isEqualTo(BackingFiles.NONE);
    stage(small);
    assertThat(files.open(small, 0, 0)).isEqualTo(BackingFiles.NONE);
    files.release(small, 0);
    files.release(small, 0);
    assertThat(files.open(small, 0, 0)).isPositive();
    files.release(small, 0);
  }

  @Test
  void idleFiles_aboveTheLimit_theLongestIdleGoes() throws Exception {
    long third = fixture.inode("sub", "inner");
    assertThat(third).isPositive();
    long other = fixture.inode("directory", "e1x");
    long another = fixture.inode("directory", "e2xx");
    stage(other);
    stage(another);
    for (long number : new long[] {small, large, other, another}) {
      files.open(number, 0, 0);
    }
    assertThat(kernel.registered).as("open ones do not count").hasSize(4);
    for (long number : new long[] {small, large, other, another}) {
      files.release(number, 0);
    }
    assertThat(kernel.registered).containsExactlyInAnyOrder(3, 4);
  }

  @Test
  void open_ofACopyCutShort_isThroughUs() throws Exception {
    Path copy = java.util.Objects.requireNonNull(fixture.fileSystem.copyFile(small));
    Files.write(copy, new byte[10]);
    assertThat(files.open(small, 0, 0)).isEqualTo(BackingFiles.NONE);
    files.release(small, 0);
  }

  @Test
  void kernel_thatForbids_isNotAskedAgain() throws Exception {
    kernel.refusal = Errno.EPERM;
    assertThat(files.open(small, 0, 0)).isEqualTo(BackingFiles.NONE);
    assertThat(files.readModeReason()).contains("CAP_SYS_ADMIN");
    kernel.refusal = null;
    assertThat(files.open(large, 0, 0)).isEqualTo(BackingFiles.NONE);
    files.release(small, 0);
    files.release(large, 0);
  }

  @Test
  void kernel_thatIsShortOfMemory_isAskedAgain() throws Exception {
    kernel.refusal = Errno.ENOMEM;
    assertThat(files.open(small, 0, 0)).isEqualTo(BackingFiles.NONE);
    assertThat(files.readMode()).isEqualTo(ReadMode.PASSTHROUGH);
    kernel.refusal = null;
    assertThat(files.open(large, 0, 0)).isPositive();
    files.release(small, 0);
    files.release(large, 0);
  }

  @Test
  void open_ofAnUnknownInode_failsAndCountsNothing() {
    assertThatThrownBy(() -> files.open(987_654, 0, 0))
        .isInstanceOfSatisfying(
            FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.ESTALE));
    files.release(987_654, 0);
  }

  @Test
  void release_ofWhatIsNotOpen_isIgnored() {
    files.release(small, 0);
    files.release(-1, 0);
    assertThat(kernel.registered).isEmpty();
  }

  /**
   * The kernel returns EIO for an id that is not registered, or differs from that of other opens.
   */
  @Test
  void opens_inManyThreadsWhileCopiesGo_areAlwaysGoodAndAgree() throws Exception {
    long seed = System.nanoTime();
    System.out.println("BackingFilesTest seed " + seed);
    int threadCount = 8;
    CyclicBarrier start = new CyclicBarrier(threadCount + 1);
    ExecutorService threads = Executors.newFixedThreadPool(threadCount + 1);
    try {
      List<Future<Integer>> running = new ArrayList<>();
      for (int i = 0; i < threadCount; i++) {
        Random random = new Random(seed + i);
        running.add(threads.submit(() -> openAndCheck(random, start)));
      }
      Future<?> dropper = threads.submit(() -> dropAndStage(new Random(seed - 1), start, running));
      int registered = 0;
      for (Future<Integer> opener : running) {
        registered += opener.get(50, TimeUnit.SECONDS);
      }
      dropper.get(50, TimeUnit.SECONDS);
      assertThat(registered).as("opens on a backing file").isPositive();
    } finally {
      threads.shutdownNow();
    }
  }

  private int openAndCheck(Random random, CyclicBarrier start) throws Exception {
    start.await(10, TimeUnit.SECONDS);
    int backed = 0;
    for (int i = 0; i < 20_000; i++) {
      long number = random.nextBoolean() ? small : large;
      int first = files.open(number, 0, 0);
      int second = files.open(number, 0, 0);
      assertThat(second).as("opens agree").isEqualTo(first);
      if (first != BackingFiles.NONE) {
        assertThat(kernel.registered).contains(first);
        backed++;
      }
      files.release(number, 0);
      files.release(number, 0);
    }
    return backed;
  }

  private @Nullable Void dropAndStage(
      Random random, CyclicBarrier start, List<Future<Integer>> openers) throws Exception {
    try (KernelSession session = fixture.session()) {
      start.await(10, TimeUnit.SECONDS);
      while (!openers.stream().allMatch(Future::isDone)) {
        long number = random.nextBoolean() ? small : large;
        fixture.copies.drop(number);
        for (int offset = 0; offset < KernelFixture.LARGE_SIZE; offset += 1 << 20) {
          session.ask(Opcode.READ, number, KernelMessages.read(offset, 1 << 20));
        }
        fixture.awaitStaged();
      }
    }
    return null;
  }

  // The answer to OPEN.

  private KernelSession session() {
    return new KernelSession(
        new KernelOperations(fixture.fileSystem, 1000, files, -1, 56, AccessRule.MODES));
  }

  /** A process that takes over the session of a killed one. */
  private BackingFiles successor(Path ledger) throws Exception {
    return new BackingFiles(fixture.fileSystem, kernel, new BackingLedger(ledger), null, 2);
  }

  @Test
  void successor_ofAProcessWithOpenFiles_goesOnWithTheirIds(@TempDir Path directory)
      throws Exception {
    Path ledger = directory.resolve("ledger");
    BackingFiles first = successor(ledger);
    int id = first.open(small, 0, 0);
    first.open(small, 0, 0);
    fixture.copies.drop(large);
    assertThat(first.open(large, 0, 0)).isEqualTo(BackingFiles.NONE);
    stage(large);
    BackingFiles second = successor(ledger);
    fixture.copies.drop(small);
    assertThat(second.open(small, 0, 0)).isEqualTo(id);
    assertThat(second.open(large, 0, 0)).as("as the one before").isEqualTo(BackingFiles.NONE);
    second.release(small, 0);
    BackingFiles third = successor(ledger);
    third.release(small, 0);
    assertThat(kernel.registered).containsExactly(id);
    third.release(small, 0);
    assertThat(kernel.registered).as("with the last close").isEmpty();
    assertThat(third.open(small, 0, 0)).isEqualTo(BackingFiles.NONE);
  }

  @Test
  void successor_ofAProcessWithIdleFiles_unregistersThem(@TempDir Path directory) throws Exception {
    Path ledger = directory.resolve("ledger");
    BackingFiles first = successor(ledger);
    first.open(small, 0, 0);
    first.release(small, 0);
    assertThat(kernel.registered).hasSize(1);
    successor(ledger);
    assertThat(kernel.registered).isEmpty();
    assertThat(new BackingLedger(ledger).entries()).isEmpty();
  }

  /** An open that a successor could not know of is not left to the kernel. */
  @Test
  void open_noRoomInTheLedger_isReadThroughUs(@TempDir Path directory) throws Exception {
    BackingLedger full = new BackingLedger(directory.resolve("ledger"));
    full.close();
    for (int i = 0; full.put(1000L + i, 0, 1) >= 0; i++) {
      assertThat(i).isLessThan(BackingLedger.PIECE_SLOTS);
    }
    BackingFiles first = new BackingFiles(fixture.fileSystem, kernel, full, null, 2);

    assertThat(first.open(small, 0, 0)).isEqualTo(BackingFiles.NONE);
    assertThat(kernel.registered).isEmpty();
  }

  @Test
  void openRequest_ofAStagedFile_answersItsId() {
    try (KernelSession session = session()) {
      ByteBuffer body = session.ask(Opcode.OPEN, small, new byte[8]).body();
      assertThat(body.capacity()).isEqualTo(16);
      assertThat(body.getLong(0)).isZero();
      assertThat(body.getInt(8)).isEqualTo(1 << 7);
      assertThat(kernel.registered).containsExactly(body.getInt(12));
      assertThat(session.ask(Opcode.RELEASE, small, new byte[24]).error()).isZero();
    }
  }

  /** To the kernel it is another inode: what is still open of the former one is no matter. */
  @Test
  void openRequest_ofAnotherVersion_isOfItsOwnCopy() throws Exception {
    fixture.faulty.beSecondHand();
    try (KernelSession session = session()) {
      session.ask(Opcode.INIT, PmfsFileSystem.ROOT, KernelMessages.init(7, 45, -1));
      int former = openedId(session, small, 0);
      assertThat(former).isPositive();
      rewriteSmall(session, 2000);
      assertThat(openedId(session, small, 1)).as("without a copy").isEqualTo(BackingFiles.NONE);
      session.ask(Opcode.READ, NodeNumber.of(small, (byte) 1), KernelMessages.read(0, 4096));
      fixture.awaitStaged();
      close(session, small, 1);
      int now = openedId(session, small, 1);
      assertThat(now).isPositive().isNotEqualTo(former);
      assertThat(openedId(session, small, 1)).isEqualTo(now);
      assertThat(kernel.registered).containsExactlyInAnyOrder(former, now);

      close(session, small, 0);
      assertThat(kernel.registered).containsExactly(now);
      close(session, small, 1);
      close(session, small, 1);
      assertThat(openedId(session, small, 1)).as("kept").isEqualTo(now);
      close(session, small, 1);
    }
  }

  private void rewriteSmall(KernelSession session, int size) throws Exception {
    Files.write(fixture.source.resolve("small"), KernelFixture.content(size));
    fixture.fileSystem.lookAgain(small);
    assertThat(session.ask(Opcode.OPEN, small, new byte[8]).errno()).isEqualTo(Errno.ESTALE);
    session.ask(Opcode.LOOKUP, PmfsFileSystem.ROOT, KernelMessages.name("small"));
  }

  private static int openedId(KernelSession session, long number, long generation) {
    long node = NodeNumber.of(number, (byte) generation);
    ByteBuffer body = session.ask(Opcode.OPEN, node, new byte[8]).body();
    assertThat(body.getLong(0)).as("handle").isEqualTo(generation);
    return body.getInt(12);
  }

  private static void close(KernelSession session, long number, long handle) {
    byte[] release = ByteBuffer.allocate(24).order(ByteOrder.nativeOrder()).putLong(handle).array();
    assertThat(session.ask(Opcode.RELEASE, number, release).error()).isZero();
  }

  @Test
  void successor_ofAProcessWithTwoVersionsOpen_goesOnWithBoth(@TempDir Path directory)
      throws Exception {
    Path ledger = directory.resolve("ledger");
    BackingFiles first = successor(ledger);
    int former = first.open(small, 0, 0);
    fixture.copies.drop(small);
    stage(small);
    int now = first.open(small, 255, 0);
    assertThat(now).isNotEqualTo(former);
    BackingFiles second = successor(ledger);
    assertThat(second.open(small, 255, 0)).isEqualTo(now);
    assertThat(second.open(small, 0, 0)).isEqualTo(former);
    second.release(small, 0);
    second.release(small, 255);
    second.release(small, 255);
    assertThat(kernel.registered).containsExactly(former);
    second.release(small, 0);
    assertThat(kernel.registered).isEmpty();
  }

  @Test
  void idleFile_ofAnotherGeneration_isNotOpenedAndGivesWay() throws Exception {
    int former = files.open(small, 1, 0);
    files.release(small, 1);
    int now = files.open(small, 2, 0);
    assertThat(now).isNotEqualTo(former);
    files.release(small, 2);
    assertThat(kernel.registered).containsExactly(now);
  }

  @Test
  void openRequest_ofAFileWithoutCopy_answersKeepCache() throws Exception {
    try (KernelSession session = session()) {
      ByteBuffer body = session.ask(Opcode.OPEN, fixture.inode("empty"), new byte[8]).body();
      assertThat(body.getInt(8)).isEqualTo(1 << 1);
      assertThat(body.getInt(12)).isZero();
      session.ask(Opcode.RELEASE, fixture.inode("empty"), new byte[24]);
    }
  }

  @Test
  void openRequest_whereTheKernelForbids_isNotImplemented() {
    kernel.refusal = Errno.EPERM;
    try (KernelSession session = session()) {
      assertThat(session.ask(Opcode.OPEN, small, new byte[8]).errno()).isEqualTo(Errno.ENOSYS);
    }
  }

  @Test
  void openRequest_ofAnUnknownInode_isStale() {
    try (KernelSession session = session()) {
      for (long node : new long[] {0, 987_654, -1, Long.MIN_VALUE}) {
        assertThat(session.ask(Opcode.OPEN, node, new byte[8]).errno()).isEqualTo(Errno.ESTALE);
      }
    }
  }

  @Test
  void openRequest_whoseAnswerIsNotTaken_leavesNothingOpen() {
    try (KernelSession session = session()) {
      session.refusals.set(1);
      assertThat(session.ask(Opcode.OPEN, small, new byte[8]).errno()).isEqualTo(Errno.ENOMEM);
      fixture.copies.drop(small);
      assertThat(kernel.registered).isEmpty();
    }
  }

  @Test
  void init_withPassthroughOffered_takesItAtDepthOne() {
    try (KernelSession session = session()) {
      Answer answer = session.ask(Opcode.INIT, PmfsFileSystem.ROOT, KernelMessages.init(7, 45, -1));
      assertThat(answer.body().getInt(32)).isEqualTo(1 << 5 | 1 << 7);
      assertThat(answer.body().getInt(36)).isEqualTo(1);
      assertThat(files.readMode()).isEqualTo(ReadMode.PASSTHROUGH);
    }
  }

  @Test
  void init_withoutPassthroughOffered_degrades() {
    try (KernelSession session = session()) {
      Answer answer =
          session.ask(Opcode.INIT, PmfsFileSystem.ROOT, KernelMessages.init(7, 39, 0x7fffffffL));
      assertThat(answer.body().getInt(36)).isZero();
      assertThat(files.readMode()).isEqualTo(ReadMode.PAGE_CACHE);
      assertThat(session.ask(Opcode.OPEN, small, new byte[8]).errno()).isEqualTo(Errno.ENOSYS);
      assertThat(new HashSet<>(kernel.registered)).isEmpty();
    }
  }
}
