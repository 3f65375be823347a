package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.fuse.system.PassedFile;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.FaultyStore.Operation;
import io.pmfs.source.LentFile;
import io.pmfs.tier.Hold;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
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

/** {@link BackingFiles} over a source that lends files: its own, or copies of a node's cache. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class LentFilesTest {
  private KernelFixture fixture;
  private final BackingFilesTest.Kernel kernel = new BackingFilesTest.Kernel();
  private BackingFiles files;
  private Path lender;
  private long small;
  private long large;

  private final AtomicInteger asked = new AtomicInteger();
  private final Set<LentFile> lent = ConcurrentHashMap.newKeySet();

  @SuppressWarnings("NullAway.Init")
  LentFilesTest() {}

  /** Lent until closed. */
  private final class Loan implements LentFile {
    private final PassedFile file;

    Loan(Path path) throws FsException {
      file = PassedFile.open(path);
      lent.add(this);
    }

    @Override
    public int descriptor() {
      return file.descriptor();
    }

    @Override
    public boolean isCopy() {
      return true;
    }

    @Override
    public void closeDescriptor() {
      file.close();
    }

    @Override
    public void close() {
      file.close();
      assertThat(lent.remove(this)).as("closed once").isTrue();
    }
  }

  @BeforeEach
  void open(@TempDir Path directory) throws Exception {
    fixture = new KernelFixture(directory.resolve("fixture"), false);
    lender = Files.createDirectory(directory.resolve("lender"));
    Files.write(lender.resolve("small"), KernelFixture.content(KernelFixture.SMALL_SIZE));
    Files.write(lender.resolve("large"), KernelFixture.content(KernelFixture.LARGE_SIZE));
    fixture.faulty.lend(this::lend);
    files = new BackingFiles(fixture.fileSystem, kernel, null, null);
    small = fixture.inode("small");
    large = fixture.inode("large");
  }

  private @Nullable LentFile lend(FileName path) {
    asked.incrementAndGet();
    Path file = lender.resolve(path.toString());
    try {
      return Files.exists(file) ? new Loan(file) : null;
    } catch (FsException e) {
      throw new AssertionError(e);
    }
  }

  @AfterEach
  void close() {
    files.close();
    assertThat(kernel.registered).isEmpty();
    assertThat(lent).isEmpty();
    fixture.close();
  }

  @Test
  void open_ofALentFile_isRegisteredAndOnLoanAsLongAsItIsOpen() throws Exception {
    int id = files.open(large, 0, 0);
    assertThat(id).isPositive();
    assertThat(files.open(large, 0, 0)).isEqualTo(id);
    assertThat(asked).hasValue(1);
    assertThat(files.leftBytes()).isEqualTo(2 * KernelFixture.LARGE_SIZE);
    files.release(large, 0);
    assertThat(kernel.registered).containsExactly(id);
    assertThat(lent).hasSize(1);
    files.release(large, 0);
    assertThat(kernel.registered).isEmpty();
    assertThat(lent).isEmpty();
  }

  @Test
  void open_ofAFileThatIsNotLent_isThroughUs_andOpensTheSourceOnce() throws Exception {
    Files.delete(lender.resolve("large"));
    assertThat(files.open(large, 0, 0)).isEqualTo(BackingFiles.NONE);
    assertThat(files.open(large, 0, 0)).isEqualTo(BackingFiles.NONE);
    assertThat(asked).hasValue(1);
    try (KernelSession session = fixture.session()) {
      assertThat(session.ask(Opcode.READ, large, KernelMessages.read(0, 4096)).error()).isZero();
    }
    assertThat(fixture.store.operations().opens()).isEqualTo(1);
    files.release(large, 0);
    files.release(large, 0);
  }

  @Test
  void open_ofALentFileOfAnotherSize_isThroughUs() throws Exception {
    Files.write(lender.resolve("large"), new byte[10]);
    assertThat(files.open(large, 0, 0)).isEqualTo(BackingFiles.NONE);
    assertThat(lent).isEmpty();
    files.release(large, 0);
  }

  @Test
  void open_thatTheKernelRefuses_isThroughUs() throws Exception {
    kernel.refusal = Errno.ENOMEM;
    assertThat(files.open(large, 0, 0)).isEqualTo(BackingFiles.NONE);
    assertThat(lent).isEmpty();
    files.release(large, 0);
  }

  @Test
  void open_whileTheSourceFails_isThroughUs() throws Exception {
    fixture.faulty.on(Operation.OPEN).fail(Errno.EACCES);
    assertThat(files.open(large, 0, 0)).isEqualTo(BackingFiles.NONE);
    fixture.faulty.clearFaults();
    files.release(large, 0);
  }

  /** A path that now leads to another file must not show that file's content. */
  @Test
  void open_ofAFileThatWasReplaced_isThroughUs() throws Exception {
    Files.delete(fixture.source.resolve("large"));
    Files.move(fixture.source.resolve("small"), fixture.source.resolve("large"));
    assertThat(files.open(large, 0, 0)).isEqualTo(BackingFiles.NONE);
    assertThat(asked).hasValue(0);
    files.release(large, 0);
  }

  @Test
  void open_anErrorWhenTheFileIsLent_isThroughUs() throws Exception {
    fixture.faulty.lend(
        path -> {
          throw new OutOfMemoryError("of this test");
        });
    assertThat(files.open(large, 0, 0)).isEqualTo(BackingFiles.NONE);
    files.release(large, 0);
  }

  @Test
  void open_inAuto_asksForLargeFilesOnly() throws Exception {
    ReadModeChoice choice = new ReadModeChoice(fixture.fileSystem, reader -> 1L << 40);
    files = new BackingFiles(fixture.fileSystem, kernel, null, choice);
    try (KernelSession session =
        new KernelSession(
            new KernelOperations(fixture.fileSystem, 1000, files, -1, 64, AccessRule.MODES))) {
      openAndRelease(session, small, KernelProtocol.FOPEN_KEEP_CACHE);
      assertThat(asked).hasValue(0);
      openAndRelease(session, large, KernelProtocol.FOPEN_PASSTHROUGH);
      assertThat(files.left()).isEqualTo(1);
    }
  }

  private static void openAndRelease(KernelSession session, long number, int expected) {
    assertThat(session.ask(Opcode.OPEN, number, new byte[8]).body().getInt(8)).isEqualTo(expected);
    session.ask(Opcode.RELEASE, number, new byte[24]);
  }

  @Test
  void successor_ofAProcessWithLentFiles_keepsThemUntilTheLastClose(@TempDir Path directory)
      throws Exception {
    Path ledger = directory.resolve("ledger");
    BackingFiles first =
        new BackingFiles(fixture.fileSystem, kernel, new BackingLedger(ledger), null);
    int id = first.open(large, 0, 0);
    List.copyOf(lent).forEach(LentFile::close); // with their process
    BackingFiles second =
        new BackingFiles(fixture.fileSystem, kernel, new BackingLedger(ledger), null);
    assertThat(second.open(large, 0, 0)).isEqualTo(id);
    assertThat(asked).hasValue(1);
    second.release(large, 0);
    assertThat(kernel.registered).containsExactly(id);
    second.release(large, 0);
    assertThat(kernel.registered).isEmpty();
  }

  /** An open that a successor could not know of is not left to the kernel. */
  @Test
  void open_noRoomInTheLedger_isThroughUsAndGivenBack(@TempDir Path directory) throws Exception {
    BackingLedger full = new BackingLedger(directory.resolve("ledger"));
    full.close();
    for (int i = 0; full.put(1000L + i, 0, 1) >= 0; i++) {
      assertThat(i).isLessThan(BackingLedger.PIECE_SLOTS);
    }
    BackingFiles first = new BackingFiles(fixture.fileSystem, kernel, full, null);
    assertThat(first.open(large, 0, 0)).isEqualTo(BackingFiles.NONE);
    assertThat(kernel.registered).isEmpty();
    assertThat(lent).isEmpty();
  }

  /** The copy is made behind the reader; all opens agree until the last one is closed. */
  @Test
  void open_ofTheSourcesFile_isOfTheCopyOnceNobodyHasItOpen(@TempDir Path directory)
      throws Exception {
    try (KernelFixture tiered = new KernelFixture(directory, true)) {
      tiered.lendItself();
      BackingFiles ours = new BackingFiles(tiered.fileSystem, kernel, null, null);
      long number = tiered.inode("large");
      Hold copying = tiered.faulty.on(Operation.READ).by("fetch").hold();
      int id = ours.open(number, 0, 0);
      assertThat(id).isPositive();
      assertThat(ours.leftSourceBytes()).isEqualTo(KernelFixture.LARGE_SIZE);
      copying.release();
      tiered.awaitStaged();
      assertThat(tiered.fileSystem.copyFile(number)).exists();
      assertThat(ours.open(number, 0, 0)).isEqualTo(id);
      assertThat(ours.leftBytes()).isZero();
      ours.release(number, 0);
      ours.release(number, 0);
      assertThat(kernel.registered).isEmpty();

      assertThat(ours.open(number, 0, 0)).isPositive().isNotEqualTo(id);
      assertThat(ours.leftBytes()).isEqualTo(KernelFixture.LARGE_SIZE);
      assertThat(ours.leftSourceBytes()).isEqualTo(2 * KernelFixture.LARGE_SIZE);
      ours.release(number, 0);
      ours.close();
    }
  }

  /** A source that cannot be stacked, such as an overlay, does not end passthrough of copies. */
  @Test
  void open_ofTheSourcesFileThatTheKernelNeverTakes_isThroughUs_butItsCopyIsNot(
      @TempDir Path directory) throws Exception {
    try (KernelFixture tiered = new KernelFixture(directory, true)) {
      tiered.lendItself();
      BackingFiles ours = new BackingFiles(tiered.fileSystem, kernel, null, null);
      long number = tiered.inode("large");
      kernel.refusal = Errno.ELOOP;
      assertThat(ours.open(number, 0, 0)).isEqualTo(BackingFiles.NONE);
      ours.release(number, 0);
      kernel.refusal = null;
      assertThat(ours.open(tiered.inode("small"), 0, 0)).isEqualTo(BackingFiles.NONE);
      tiered.awaitStaged();
      assertThat(ours.open(number, 0, 0)).isPositive();
      ours.release(number, 0);
      ours.close();
    }
  }

  /** Else opens would keep all workers, and names could not be looked up either. */
  @Test
  void opens_whileTheSourceHangs_doNotAllWaitForIt() throws Exception {
    Hold hold = fixture.faulty.on(Operation.OPEN).hold();
    ExecutorService threads = Executors.newCachedThreadPool();
    try {
      List<Future<Integer>> opens = new ArrayList<>();
      for (int i = 1; i <= 20; i++) {
        long number = fixture.inode("directory", "e" + i + "x".repeat(i));
        opens.add(threads.submit(() -> files.open(number, 0, 0)));
      }
      Await.until("16 are open", () -> opens.stream().filter(Future::isDone).count() >= 16);
      assertThat(hold.count()).isEqualTo(4);
      hold.release();
      for (Future<Integer> open : opens) {
        assertThat(open.get()).isEqualTo(BackingFiles.NONE);
      }
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void opensAndCloses_inManyThreads_agreeAndGiveBackAll() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(4);
    try {
      List<Future<?>> running = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        running.add(
            threads.submit(
                () -> {
                  for (int round = 0; round < 1000; round++) {
                    int first = files.open(large, 0, 0);
                    assertThat(files.open(large, 0, 0)).as("opens agree").isEqualTo(first);
                    assertThat(kernel.registered).contains(first);
                    files.release(large, 0);
                    files.release(large, 0);
                  }
                  return null;
                }));
      }
      for (Future<?> one : running) {
        one.get(50, TimeUnit.SECONDS);
      }
    } finally {
      threads.shutdownNow();
    }
  }
}
