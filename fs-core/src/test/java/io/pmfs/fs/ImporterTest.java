package io.pmfs.fs;

import static io.pmfs.fs.PmfsFileSystemTest.errnoOf;
import static io.pmfs.metadata.FileType.UNKNOWN;
import static io.pmfs.source.FaultyStore.Operation.LIST;
import static io.pmfs.source.FaultyStore.Operation.OPEN;
import static io.pmfs.source.FaultyStore.Operation.STATUS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.util.concurrent.Uninterruptibles;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.FakeStore;
import io.pmfs.source.FaultyStore;
import io.pmfs.table.StateException;
import io.pmfs.tasks.Dataset;
import io.pmfs.tier.Hold;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@Timeout(60)
final class ImporterTest {
  static final long ROOM = 256L << 20;

  @TempDir private Path directory;

  static void sample(FakeStore store) {
    store.directory("a");
    store.directory("a/b");
    store.file("a/f", 1, 100);
    store.file("a/g", 2, 200);
    store.file("a/b/h", 3, 300);
    store.file("top", 4, 400);
  }

  private Dataset sample() throws Exception {
    return new Dataset(directory, ImporterTest::sample, ROOM);
  }

  static byte[] content(long seed, int size) {
    return FakeStore.content(seed, 0, size);
  }

  static long of(Map<String, Long> numbers, String path) {
    return Objects.requireNonNull(numbers.get(path));
  }

  @Test
  void remount_nothingChanged_listsNothing() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.readAll();
      for (int session = 0; session < 3; session++) {
        dataset.remount(store -> {});
        dataset.readAll();
        assertThat(dataset.asked().lists()).isZero();
      }
    }
  }

  @Test
  void remount_directoryChanged_onlyThatOneIsListedAndOthersKeepTheirNumbers() throws Exception {
    try (Dataset dataset = sample()) {
      var before = dataset.readAll();
      dataset.remount(
          store -> {
            store.file("a/new", 5, 500);
            store.remove("a/g");
          });
      var after = dataset.readAll();

      var asked = dataset.asked();
      assertThat(asked.lists()).isEqualTo(1);
      assertThat(asked.bytes()).isEqualTo(500);
      assertThat(dataset.names("a")).containsExactly("b", "f", "new");
      assertThat(dataset.read("a/new")).isEqualTo(content(5, 500));
      assertThat(errnoOf(() -> dataset.number("a/g"))).isEqualTo(Errno.ENOENT);
      assertThat(of(after, "a/f")).isEqualTo(of(before, "a/f"));
      assertThat(after.get("a/b/h")).isEqualTo(of(before, "a/b/h"));
      assertThat(after).doesNotContainValue(of(before, "a/g"));
      assertThat(dataset.namespace.inode(of(before, "a/g"))).isNull();
      assertThat(dataset.copyCount()).isEqualTo(4);
    }
  }

  @Test
  void remount_fileChangedInPlace_hasNewAttributesAndItsCopyIsDropped() throws Exception {
    try (Dataset dataset = sample()) {
      var before = dataset.readAll();
      dataset.remount(store -> store.write("a/f", 9, 150));

      Inode inode = dataset.inode("a/f");
      assertThat(inode.number()).isEqualTo(of(before, "a/f"));
      assertThat(inode.attributes())
          .isEqualTo(dataset.store.expectedStatus(FileName.of("a/f")).attributes());
      assertThat(dataset.copyCount()).isEqualTo(3);
      assertThat(dataset.read("a/f")).isEqualTo(content(9, 150));
      dataset.awaitIdle();
      assertThat(dataset.copyCount()).isEqualTo(4);
    }
  }

  @Test
  void remount_sameSizeOtherTime_isAnotherVersion() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.readAll();
      dataset.remount(store -> store.write("top", 9, 400));

      assertThat(dataset.read("top")).isEqualTo(content(9, 400));
    }
  }

  @Test
  void remount_fileReplaced_isAnotherInodeAndItsCopyIsDropped() throws Exception {
    try (Dataset dataset = sample()) {
      var before = dataset.readAll();
      Instant modified = dataset.inode("a/f").attributes().modificationTime();
      dataset.remount(
          store -> {
            store.file("a/f", 9, 100);
            // Like tools that preserve times: same size and time.
            store.setModified("a/f", modified);
          });

      assertThat(dataset.read("a/f")).isEqualTo(content(9, 100));
      assertThat(dataset.number("a/f")).isNotEqualTo(of(before, "a/f"));
      assertThat(dataset.namespace.inode(of(before, "a/f"))).isNull();
      assertThat(dataset.namespace.copies(of(before, "a/f"))).isEmpty();
    }
  }

  @Test
  void remount_fileBecameADirectory_isOne() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.readAll();
      dataset.remount(
          store -> {
            store.remove("a/f");
            store.directory("a/f");
            store.file("a/f/x", 7, 70);
          });

      assertThat(dataset.read("a/f/x")).isEqualTo(content(7, 70));
      dataset.readAll();
      assertThat(dataset.copyCount()).isEqualTo(4);
    }
  }

  @Test
  void remount_subtreeRemoved_isForgottenWithItsCopies() throws Exception {
    try (Dataset dataset =
        new Dataset(
            directory,
            store -> {
              sample(store);
              store.symbolicLink("a/b/link", "h");
              store.hardLink("a/b/h2", "a/b/h");
              store.xattr("a/b/h", "user.x", new byte[1]);
            },
            ROOM)) {
      var before = dataset.readAll();
      dataset.fs.extendedAttributes(of(before, "a/b/h"));
      dataset.remount(
          store -> {
            for (String path : List.of("a/b/h", "a/b/h2", "a/b/link", "a/b", "a/f", "a/g", "a")) {
              store.remove(path);
            }
          });
      assertThat(dataset.names("")).containsExactly("top");

      for (var entry : before.entrySet()) {
        if (entry.getKey().startsWith("a")) {
          assertThat(dataset.namespace.inode(entry.getValue())).as(entry.getKey()).isNull();
          assertThat(dataset.namespace.copies(entry.getValue())).isEmpty();
          assertThat(errnoOf(() -> dataset.fs.inode(entry.getValue()))).isEqualTo(Errno.ESTALE);
        }
      }
      assertThat(dataset.copyCount()).isEqualTo(1);
      assertThat(dataset.tiers.get(0).status().usedBytes()).isEqualTo(4096);
    }
  }

  /** As if the process had been killed there. */
  @Test
  void remount_subtreeRemovedButNotForgotten_isForgottenByTheNextMount() throws Exception {
    try (Dataset dataset = sample()) {
      var before = dataset.readAll();
      dataset.remount(store -> List.of("a/b/h", "a/b", "a/f", "a/g", "a").forEach(store::remove));
      dataset.fs.onCopyGone(
          number -> {
            throw new IllegalStateException("injected");
          });
      assertThatThrownBy(() -> dataset.names("")).hasMessage("injected");
      dataset.remount(store -> {});

      assertThat(dataset.names("")).containsExactly("top");
      Await.until("its copies are gone", () -> dataset.copyCount() == 1);
      assertThat(dataset.tiers.get(0).status().usedBytes()).isEqualTo(4096);
      Await.until(
          "its inodes are gone",
          () ->
              before.values().stream()
                  .allMatch(
                      number ->
                          number == of(before, "")
                              || number == of(before, "top")
                              || dataset.namespace.inode(number) == null));
    }
  }

  @Test
  void remount_fileReplacedInAListingThatBreaksOff_isForgottenByTheNextMount() throws Exception {
    try (Dataset dataset = sample()) {
      var before = dataset.readAll();
      dataset.remount(
          store -> {
            store.file("a/f", 9, 100);
            store.file("a/new", 5, 500);
          });
      dataset.faulty.on(LIST).of("a").cut();
      assertThat(errnoOf(() -> dataset.names("a"))).isEqualTo(Errno.EIO);
      dataset.remount(store -> {});

      assertThat(dataset.names("a")).containsExactly("b", "f", "g", "new");
      assertThat(dataset.number("a/f")).isNotEqualTo(of(before, "a/f"));
      Await.until("the old copy is gone", () -> dataset.copyCount() == 3);
      Await.until(
          "the old inode is gone", () -> dataset.namespace.inode(of(before, "a/f")) == null);
    }
  }

  @Test
  void remount_nameReplacedInAListingThatBreaksOff_theFileIsReadByItsOtherName() throws Exception {
    try (Dataset dataset =
        new Dataset(
            directory,
            store -> {
              store.directory("first");
              store.file("first/f", 1, 100);
              store.directory("then");
              store.hardLink("then/f", "first/f");
              store.file("then/g", 2, 200);
            },
            ROOM)) {
      var before = dataset.readAll();
      dataset.remount(store -> store.file("then/f", 9, 150));
      dataset.faulty.on(LIST).of("then").cut();
      assertThat(errnoOf(() -> dataset.names("then"))).isEqualTo(Errno.EIO);
      dataset.remount(store -> {});

      assertThat(dataset.read("first/f")).isEqualTo(content(1, 100));
      assertThat(dataset.number("first/f")).isEqualTo(of(before, "first/f"));
      assertThat(dataset.read("then/f")).isEqualTo(content(9, 150));
    }
  }

  /** As if the process had been killed there. */
  @Test
  void remount_listingEndsBeforeWhatChangedWasForgotten_showsTheNewVersions() throws Exception {
    try (Dataset dataset =
        new Dataset(
            directory,
            store -> {
              sample(store);
              store.xattr("a/g", "user.x", new byte[] {1});
              store.symbolicLink("a/link", "f");
            },
            ROOM)) {
      var before = dataset.readAll();
      dataset.fs.extendedAttributes(of(before, "a/g"));
      dataset.remount(
          store -> {
            store.file("a/new", 5, 500);
            store.write("a/f", 9, 150);
            store.xattr("a/g", "user.x", new byte[] {2});
            store.relink("a/link", "g");
          });
      dataset.fs.onCopyGone(
          number -> {
            throw new IllegalStateException("injected");
          });
      assertThatThrownBy(() -> dataset.names("a")).hasMessage("injected");
      dataset.remount(store -> {});

      assertThat(dataset.fs.extendedAttributes(dataset.number("a/g")).get(FileName.of("user.x")))
          .containsExactly(2);
      assertThat(dataset.fs.readSymbolicLink(dataset.number("a/link"))).isEqualTo(FileName.of("g"));
      assertThat(dataset.read("a/f")).isEqualTo(content(9, 150));
    }
  }

  @Test
  void remount_directoryRenamed_isReadableUnderItsNewName() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.readAll();
      dataset.remount(store -> store.rename("a", "c"));

      assertThat(dataset.names("")).containsExactly("top", "c");
      assertThat(dataset.read("c/b/h")).isEqualTo(content(3, 300));
      assertThat(dataset.read("c/f")).isEqualTo(content(1, 100));
      dataset.readAll();
      assertThat(dataset.copyCount()).isEqualTo(4);
    }
  }

  @Test
  void mount_sourceIsAnotherTreeWithTheSameTimes_isListedAnew() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.readAll();
      FakeStore next = new FakeStore(2000);
      Instant modified =
          dataset.store.expectedStatus(FileName.of("")).attributes().modificationTime();
      next.file("other", 8, 80);
      next.setModified("", modified);
      dataset.remount(store -> dataset.store = next);

      assertThat(dataset.names("")).containsExactly("other");
      assertThat(dataset.read("other")).isEqualTo(content(8, 80));
    }
  }

  // Files whose attributes the source cannot deliver.

  @ParameterizedTest
  @EnumSource(names = {"EIO", "ESTALE", "EACCES", "EAGAIN", "ENOENT"})
  void list_oneFileIsBeyondDescription_hasAllNamesAndItsErrorEachTime(Errno errno)
      throws Exception {
    try (Dataset dataset = sample()) {
      dataset.faulty.on(STATUS).of("a/f").fail(errno);
      assertThat(dataset.names("a")).containsExactly("b", "f", "g");
      assertThat(dataset.read("a/g")).isEqualTo(content(2, 200));
      assertThat(dataset.read("a/b/h")).isEqualTo(content(3, 300));
      for (int i = 0; i < 3; i++) {
        assertThat(errnoOf(() -> dataset.inode("a/f"))).isEqualTo(errno);
      }

      dataset.faulty.clearFaults();
      assertThat(dataset.read("a/f")).isEqualTo(content(1, 100));
      assertThat(dataset.list("a")).extracting(DirectoryEntry::type).doesNotContain(UNKNOWN);
      dataset.readAll();
      assertThat(dataset.copyCount()).isEqualTo(4);
    }
  }

  @Test
  void list_oneDirectoryIsBeyondDescription_isEnteredOnceItIsNot() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.faulty.on(STATUS).of("a/b").fail(Errno.EIO);
      assertThat(dataset.names("a")).containsExactly("b", "f", "g");
      assertThat(errnoOf(() -> dataset.read("a/b/h"))).isEqualTo(Errno.EIO);
      dataset.faulty.clearFaults();
      assertThat(dataset.read("a/b/h")).isEqualTo(content(3, 300));
      dataset.remount(store -> {});
      assertThat(dataset.readAll()).hasSize(7);
    }
  }

  /** A file with a copy, in a directory that is listed again. */
  @ParameterizedTest
  @EnumSource(names = {"EIO", "ENOENT"})
  void remount_aKnownFileIsBeyondDescription_keepsItsCopy(Errno errno) throws Exception {
    try (Dataset dataset = sample()) {
      var before = dataset.readAll();
      dataset.remount(store -> store.file("a/new", 5, 500));
      dataset.faulty.on(STATUS).of("a/f").fail(errno);
      assertThat(dataset.names("a")).containsExactly("b", "f", "g", "new");
      assertThat(errnoOf(() -> dataset.inode("a/f"))).isEqualTo(errno);
      dataset.faulty.clearFaults();
      assertThat(dataset.read("a/f")).isEqualTo(content(1, 100));
      assertThat(dataset.number("a/f")).isEqualTo(of(before, "a/f"));
      assertThat(dataset.asked().bytes()).isZero();
    }
  }

  @Test
  void list_mostFilesAreBeyondDescription_fails() throws Exception {
    try (Dataset dataset =
        new Dataset(
            directory,
            store -> {
              store.directory("a");
              for (int i = 0; i < 300; i++) {
                store.file("a/f" + i, i, 10);
              }
            },
            ROOM)) {
      dataset.faulty.on(STATUS).of(path -> path.toString().startsWith("a/f")).fail(Errno.EIO);
      assertThat(errnoOf(() -> dataset.names("a"))).isEqualTo(Errno.EIO);
      assertThat(dataset.asked().stats()).as("looks, with 4 threads").isLessThan(100);
      dataset.faulty.clearFaults();
      assertThat(dataset.names("a")).hasSize(300);
    }
  }

  // Changes while it is listed.

  @Test
  void list_nameAppearsMeanwhile_isListedAgain() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.faulty.on(STATUS).of("a/g").first().run(path -> dataset.store.file("a/late", 7, 70));

      assertThat(dataset.names("a")).containsExactly("b", "f", "g", "late");
      assertThat(dataset.read("a/late")).isEqualTo(content(7, 70));
      assertThat(dataset.asked().lists()).isEqualTo(3);
    }
  }

  @Test
  void list_nameVanishesMeanwhile_isNotThere() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.number("a");
      dataset.faulty.on(STATUS).of("a/f").first().run(path -> dataset.store.remove("a/g"));

      assertThat(dataset.names("a")).containsExactly("b", "f");
      assertThat(errnoOf(() -> dataset.number("a/g"))).isEqualTo(Errno.ENOENT);
    }
  }

  @Test
  void list_mostNamesVanishMeanwhile_areNotThere() throws Exception {
    try (Dataset dataset =
        new Dataset(
            directory,
            store -> {
              store.directory("a");
              for (int i = 0; i < 100; i++) {
                store.file("a/f" + i, i, 10);
              }
            },
            ROOM)) {
      dataset.number("a");
      dataset
          .faulty
          .on(STATUS)
          .of("a/f0")
          .first()
          .run(
              path -> {
                for (int i = 1; i < 100; i++) {
                  dataset.store.remove("a/f" + i);
                }
              });
      assertThat(dataset.names("a")).containsExactly("f0");
    }
  }

  @Test
  void list_namesComeAndGoAllTheTime_areNotThere() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.number("a");
      dataset.faulty.faults(
          (operation, path, offset) -> {
            if (operation == LIST) {
              dataset.store.file("a/fleeting", 5, 50);
            } else if (path.equals(FileName.of("a/fleeting"))) {
              dataset.store.remove("a/fleeting");
            }
            return FaultyStore.Answer.WHOLE;
          });
      assertThat(dataset.names("a")).containsExactly("b", "f", "g");
    }
  }

  @Test
  void list_nameVanishesAfterItWasSeen_leavesNoInodeBehind() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.number("a");
      dataset.faulty.on(STATUS).of("a/g").first().run(path -> dataset.store.remove("a/f"));
      assertThat(dataset.names("a")).containsExactly("b", "g");

      List<FileName> inodes = new ArrayList<>();
      for (long number = Namespace.ROOT; number <= dataset.namespace.lastNumber(); number++) {
        Inode inode = dataset.namespace.inode(number);
        if (inode != null) {
          inodes.add(inode.name());
        }
      }
      assertThat(inodes).doesNotContain(FileName.of("f"));
    }
  }

  @Test
  void list_changesAllTheTime_isTakenAsItWasAndListedAgainNextTime() throws Exception {
    try (Dataset dataset = sample()) {
      AtomicInteger changes = new AtomicInteger();
      dataset
          .faulty
          .on(LIST)
          .of("a")
          .run(path -> dataset.store.file("a/n" + changes.incrementAndGet(), 1, 1));
      assertThat(dataset.names("a")).contains("b", "f", "g", "n1");
      assertThat(changes.get()).isBetween(2, 5);
      dataset.names("a");
      dataset.faulty.clearFaults();
      dataset.remount(store -> {});

      assertThat(dataset.names("a")).hasSize(3 + changes.get());
      assertThat(dataset.asked().lists()).isEqualTo(1);
    }
  }

  @Test
  void list_freshlyModified_isListedAgainNextTime() throws Exception {
    try (Dataset dataset = sample()) {
      Attributes before = dataset.store.expectedStatus(FileName.of("a/b")).attributes();
      dataset.now = before.modificationTime().plus(Duration.ofMillis(500));
      dataset.readAll();
      dataset.now = dataset.store.now().plus(Duration.ofHours(1));
      dataset.remount(
          store -> {
            // Within the grain of the source's clock.
            store.file("a/b/late", 7, 70);
            store.setModified("a/b", before.modificationTime());
          });

      assertThat(dataset.names("a/b")).containsExactly("h", "late");
      dataset.readAll();
      // And the root, which was created later; their parent was reliable.
      assertThat(dataset.asked().lists()).isEqualTo(2);
      dataset.remount(store -> {});
      dataset.readAll();
      assertThat(dataset.asked().lists()).isZero();
    }
  }

  // Failures.

  @Test
  void list_sourceHasNoSuchDirectoryNow_isStale() throws Exception {
    try (Dataset dataset = new Dataset(directory, ImporterTest::sample, ROOM)) {
      long number = dataset.number("a");
      dataset.faulty.on(LIST).of("a").fail(Errno.ENOENT);
      assertThat(errnoOf(() -> dataset.fs.list(number, 0, entry -> true))).isEqualTo(Errno.ESTALE);
    }
  }

  /**
   * The kernel's listings request attributes for each entry. Closing stands for whatever needs the
   * namespace alone; it fails for a thread that is inside the namespace.
   */
  @Test
  void list_whileTheVisitorIsCalled_holdsNothingOfTheNamespace() throws Exception {
    try (Dataset dataset = sample()) {
      long number = dataset.number("a");
      List<DirectoryEntry> visited = new ArrayList<>();
      dataset.fs.list(
          number,
          0,
          entry -> {
            visited.add(entry);
            dataset.namespace.close();
            return false;
          });
      assertThat(visited).hasSize(1);
    }
  }

  /** As the kernel's listings do, while others write and one waits to be alone. */
  @Test
  @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void list_visitorChangesInodesWhileAnotherThreadCloses_ends() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.readAll();
      dataset.remount(store -> {});
      long number = dataset.number("a");
      Hold hold = dataset.faulty.on(STATUS).of("a/f").hold();
      Thread lister = start(() -> dataset.fs.list(number, 0, entry -> isCompared(dataset, entry)));
      hold.awaitReached();
      Thread closer = start(dataset.namespace::close);
      Await.until("it closes", () -> isWaitingOrDone(closer));
      Thread writer = start(() -> dataset.namespace.updateInode(number, known -> known));
      Await.until("it writes", () -> isWaitingOrDone(writer));
      hold.release();
      for (Thread thread : List.of(lister, closer, writer)) {
        thread.join(10_000);
        assertThat(thread.isAlive()).isFalse();
      }
    }
  }

  private static boolean isCompared(Dataset dataset, DirectoryEntry entry) {
    try {
      return dataset.fs.verifiedInode(entry.inode()) != null;
    } catch (FsException e) {
      throw new AssertionError(e);
    }
  }

  private static boolean isWaitingOrDone(Thread thread) {
    return thread.getState() == Thread.State.WAITING
        || thread.getState() == Thread.State.TERMINATED;
  }

  private static Thread start(Steps steps) {
    Thread thread =
        new Thread(
            () -> {
              try {
                steps.take();
              } catch (FsException | StateException e) {
                // The namespace is closed.
              }
            });
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  private interface Steps {
    void take() throws FsException;
  }

  /**
   * The listing of an earlier session is shown at once, and is compared when a peer requests it.
   */
  @Test
  void list_whileTheDirectoryIsCompared_isWhole() throws Exception {
    ExecutorService threads = Executors.newCachedThreadPool();
    try (Dataset dataset = sample()) {
      dataset.readAll();
      dataset.remount(store -> {});
      List<String> names = dataset.names("a");
      List<Future<List<String>>> listers = new ArrayList<>();
      dataset
          .faulty
          .on(LIST)
          .run(
              path -> {
                // This thread looks up the directory before it is compared, and lists it meanwhile.
                Future<List<String>> lister = threads.submit(() -> dataset.names("a"));
                listers.add(lister);
                assertThat(isDoneSoon(lister)).isFalse();
              });
      dataset.fs.compareAll(dataset.number("a"));

      assertThat(listers).hasSize(1);
      assertThat(listers.get(0).get()).isEqualTo(names);
    } finally {
      threads.shutdownNow();
    }
  }

  private static boolean isDoneSoon(Future<?> future) {
    try {
      future.get(200, TimeUnit.MILLISECONDS);
      return true;
    } catch (TimeoutException e) {
      return false;
    } catch (InterruptedException | ExecutionException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void list_afterTheDirectoryCouldNotBeCompared_isWhole() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.readAll();
      dataset.remount(store -> {});
      List<String> names = dataset.names("a");
      long number = dataset.number("a");
      dataset.faulty.on(LIST).of("a").fail(Errno.EIO);
      assertThat(errnoOf(() -> dataset.fs.compareAll(number))).isEqualTo(Errno.EIO);
      dataset.faulty.clearFaults();
      assertThat(dataset.names("a")).isEqualTo(names);
    }
  }

  @Test
  void list_failsInALaterSession_keepsWhatIsKnownForTheNext() throws Exception {
    try (Dataset dataset = sample()) {
      var before = dataset.readAll();
      dataset.remount(store -> store.file("a/new", 5, 50));
      dataset.faulty.on(LIST).of("a").fail(Errno.EIO);
      assertThat(errnoOf(() -> dataset.names("a"))).isEqualTo(Errno.EIO);
      dataset.faulty.clearFaults();
      dataset.remount(store -> {});

      var after = dataset.readAll();
      assertThat(after).containsAllEntriesOf(before).containsKey("a/new");
      assertThat(dataset.asked().bytes()).isEqualTo(50);
    }
  }

  @Test
  void inode_fileVanishedButItsDirectorySaysOtherwise_isEnoent() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.readAll();
      Attributes directory = dataset.store.expectedStatus(FileName.of("a")).attributes();
      dataset.remount(
          store -> {
            store.remove("a/f");
            store.setModified("a", directory.modificationTime());
          });

      assertThat(errnoOf(() -> dataset.inode("a/f"))).isEqualTo(Errno.ENOENT);
      assertThat(dataset.read("a/g")).isEqualTo(content(2, 200));
    }
  }

  // Many.

  @Test
  void list_tenThousandNames_areLookedAtByManyThreadsOnce() throws Exception {
    int count = 10_000;
    Set<String> threads = ConcurrentHashMap.newKeySet();
    try (Dataset dataset =
        new Dataset(
            directory,
            store -> {
              store.directory("many");
              for (int i = 0; i < count; i++) {
                store.file("many/f" + i, i, 10);
              }
            },
            ROOM)) {
      dataset.faulty.on(STATUS).run(path -> threads.add(Thread.currentThread().getName()));
      List<String> names = dataset.names("many");
      assertThat(names).hasSize(count).doesNotHaveDuplicates();
      assertThat(names.get(0)).isEqualTo("f0");
      assertThat(names.get(count - 1)).isEqualTo("f" + (count - 1));
      assertThat(threads).hasSizeGreaterThan(2);
      // One for each name, and the directory and the root once more after listing.
      assertThat(dataset.asked().stats()).isBetween(count + 2L, count + 5L);
      for (int i = 0; i < count; i += 500) {
        assertThat(dataset.read("many/f" + i)).isEqualTo(content(i, 10));
      }
    }
  }

  @Test
  void find_manyThreadsAtOnce_listsEachDirectoryOnce() throws Exception {
    ExecutorService readers = Executors.newFixedThreadPool(8);
    try (Dataset dataset =
        new Dataset(
            directory,
            store -> {
              for (int i = 0; i < 20; i++) {
                store.directory("d" + i);
                for (int j = 0; j < 100; j++) {
                  store.file("d" + i + "/f" + j, i * 100L + j, 50);
                }
              }
            },
            ROOM)) {
      for (int session = 0; session < 2; session++) {
        CountDownLatch together = new CountDownLatch(8);
        List<Future<?>> running = new ArrayList<>();
        for (int reader = 0; reader < 8; reader++) {
          int first = reader * 7;
          running.add(
              readers.submit(
                  () -> {
                    together.countDown();
                    assertThat(together.await(10, TimeUnit.SECONDS)).isTrue();
                    for (int i = 0; i < 2000; i++) {
                      int file = (first + i * 37) % 2000;
                      String path = "d" + file / 100 + "/f" + file % 100;
                      assertThat(dataset.read(path)).isEqualTo(content(file, 50));
                    }
                    return true;
                  }));
        }
        for (Future<?> one : running) {
          one.get();
        }
        dataset.awaitIdle();
        if (session == 0) {
          var asked = dataset.asked();
          assertThat(asked.lists()).isEqualTo(21);
          dataset.remount(store -> {});
        }
      }
      var asked = dataset.asked();
      assertThat(asked.lists()).isZero();
      assertThat(asked.stats()).isGreaterThanOrEqualTo(2020);
    } finally {
      readers.shutdownNow();
    }
  }

  @Test
  void checked_hundredLevels_pathIsResolved() throws Exception {
    StringBuilder path = new StringBuilder("x".repeat(255));
    try (Dataset dataset =
        new Dataset(
            directory,
            store -> {
              store.directory(path.toString());
              for (int level = 1; level < 100; level++) {
                path.append('/').append("x".repeat(255));
                store.directory(path.toString());
              }
              store.file(path + "/f", 1, 10);
            },
            ROOM)) {
      assertThat(dataset.read(path + "/f")).isEqualTo(content(1, 10));
      dataset.remount(store -> store.write(path + "/f", 2, 10));
      assertThat(dataset.read(path + "/f")).isEqualTo(content(2, 10));
      assertThat(Objects.requireNonNull(dataset.namespace.path(dataset.number(path + "/f"))).size())
          .isEqualTo(100 * 256 + 1);
    }
  }

  /** Another thread found the change before, and the attributes were shown since. */
  @Test
  void lookAgain_byTwoAtOnce_makesTheFileStaleOnce() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(2);
    try (Dataset dataset = sample()) {
      dataset.faulty.beSecondHand();
      long top = dataset.number("top");
      dataset.store.write("top", 9, 150);
      CountDownLatch first = new CountDownLatch(1);
      CountDownLatch second = new CountDownLatch(1);
      AtomicInteger asked = new AtomicInteger();
      dataset
          .faulty
          .on(STATUS)
          .of("top")
          .run(
              path ->
                  assertThat(
                          Uninterruptibles.awaitUninterruptibly(
                              asked.incrementAndGet() == 1 ? first : second, 50, TimeUnit.SECONDS))
                      .isTrue());
      Future<Inode> earlier = threads.submit(() -> dataset.fs.lookAgain(top));
      Await.until("the source is asked", () -> asked.get() == 1);
      AtomicReference<Thread> waiting = new AtomicReference<>();
      Future<Inode> later =
          threads.submit(
              () -> {
                waiting.set(Thread.currentThread());
                return dataset.fs.lookAgain(top);
              });
      Await.until(
          "the second one waits",
          () -> waiting.get() != null && waiting.get().getState() == Thread.State.WAITING);
      first.countDown();
      earlier.get();
      assertThat(dataset.fs.isStale(top)).isTrue();
      dataset.fs.refresh(top);
      second.countDown();
      later.get();
      dataset.fs.open(top);
      assertThat(dataset.read("top")).isEqualTo(content(9, 150));
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void lookAgain_withoutAnAnswer_changesNothing() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.faulty.beSecondHand();
      long top = dataset.number("top");
      Inode shown = dataset.fs.inode(top);
      dataset.store.write("top", 9, 150);
      dataset.faulty.on(STATUS).of("top").fail(Errno.EIO);
      assertThat(errnoOf(() -> dataset.fs.lookAgain(top))).isEqualTo(Errno.EIO);
      dataset.faulty.clearFaults();

      assertThat(dataset.fs.inode(top)).isEqualTo(shown);
      assertThat(dataset.fs.isStale(top)).isFalse();
      assertThat(dataset.fs.lookAgain(top).attributes().size()).isEqualTo(150);
      assertThat(dataset.fs.isStale(top)).isTrue();
    }
  }

  /** The kernel may still have what the predecessor showed. */
  @Test
  void lookAgain_ofAFileThatChanged_isKnownToTheNextProcess() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.faulty.beSecondHand();
      long top = dataset.number("top");
      long other = dataset.number("a/f");
      dataset.fs.open(top);
      dataset.store.write("top", 9, 150);
      dataset.fs.lookAgain(top);

      PmfsFileSystem next = dataset.openFileSystem();
      assertThat(errnoOf(() -> next.open(top))).isEqualTo(Errno.ESTALE);
      next.open(top, (byte) 1);
      next.open(other);

      dataset.remount(store -> {});
      dataset.faulty.beSecondHand();
      dataset.fs.open(top);
      assertThat(dataset.namespace.counters("generation/")).isEmpty();
    }
  }

  /** The file now ends where the earlier version did. */
  @Test
  void read_ofAFileThatIsTheNextVersionMeanwhile_isStale() throws Exception {
    ExecutorService threads = Executors.newSingleThreadExecutor();
    try (Dataset dataset = sample()) {
      dataset.faulty.beSecondHand();
      long top = dataset.number("top");
      CountDownLatch refreshed = new CountDownLatch(1);
      AtomicInteger asked = new AtomicInteger();
      dataset
          .faulty
          .on(OPEN)
          .of("top")
          .run(
              path -> {
                if (asked.incrementAndGet() <= 3) {
                  assertThat(Uninterruptibles.awaitUninterruptibly(refreshed, 50, TimeUnit.SECONDS))
                      .isTrue();
                  throw new FsException(Errno.ESTALE, "injected");
                }
              });
      Future<Errno> reading = threads.submit(() -> errnoOf(() -> dataset.read(top, 0, 1000)));
      Await.until("the source is asked", () -> asked.get() == 1);
      dataset.store.write("top", 9, 1000);
      dataset.fs.lookAgain(top);
      dataset.fs.refresh(top);
      refreshed.countDown();
      assertThat(reading.get()).isEqualTo(Errno.ESTALE);
      assertThat(dataset.read("top")).isEqualTo(content(9, 1000));
    } finally {
      threads.shutdownNow();
    }
  }
}
