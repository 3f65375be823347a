package io.pmfs.metadata;

import static io.pmfs.metadata.Samples.copy;
import static io.pmfs.metadata.Samples.directory;
import static io.pmfs.metadata.Samples.directoryAttributes;
import static io.pmfs.metadata.Samples.file;
import static io.pmfs.metadata.Samples.importAll;
import static io.pmfs.metadata.Samples.link;
import static io.pmfs.metadata.Samples.list;
import static io.pmfs.metadata.Samples.listing;
import static io.pmfs.metadata.Samples.numberOf;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.table.StateException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What every {@link Namespace} does. */
public abstract class NamespaceContract {
  private static final long ROOT = Namespace.ROOT;
  private static final Instant CHANGE = Instant.ofEpochSecond(5, 7);

  @TempDir protected Path directory;
  private Namespace namespace;

  /** Opens the namespace kept in a directory, which is empty the first time. */
  protected abstract Namespace open(Path directory);

  /** Called by the constructor of each suite. */
  @SuppressWarnings("NullAway.Init")
  protected NamespaceContract() {}

  @BeforeEach
  void openWithRoot() {
    namespace = open(directory);
    Samples.put(namespace, Samples.root());
  }

  /** What is to be done before it is closed. */
  protected void beforeClose(Namespace open) {}

  @AfterEach
  void closeNamespace() {
    beforeClose(namespace);
    namespace.close();
  }

  private void reopen() {
    beforeClose(namespace);
    namespace.close();
    namespace = open(directory);
  }

  @Test
  void inode_absent_isNull() {
    assertThat(namespace.inode(99)).isNull();
    assertThat(namespace.find(ROOT, FileName.of("absent"))).isNull();
    assertThat(namespace.path(99)).isNull();
    assertThat(namespace.symbolicLinkTarget(99, CHANGE)).isNull();
    assertThat(namespace.extendedAttributes(99, CHANGE)).isNull();
    assertThat(namespace.copies(99)).isEmpty();
    assertThat(namespace.counter("absent")).isNull();
    assertThat(list(namespace, 99)).isEmpty();
  }

  @Test
  void inode_everyField_isReadBack() {
    Inode inode =
        new Inode(
            ROOT,
            new FileIdentity(-1, Long.MIN_VALUE),
            77,
            FileName.of(new byte[] {(byte) 0xff, 1}),
            5,
            new Listing(4, Instant.EPOCH),
            new Attributes(
                0020600,
                Integer.MAX_VALUE,
                -1,
                -2,
                0x0000_0103_0000_0005L,
                Long.MAX_VALUE,
                -3,
                Instant.ofEpochSecond(-1, 999_999_999),
                Instant.ofEpochSecond(1L << 40),
                Instant.EPOCH));
    Samples.put(namespace, inode);
    assertThat(namespace.inode(ROOT)).isEqualTo(inode);
  }

  @Test
  void import_newDirectory_numbersFromTwoInOrder() {
    assertThat(importAll(namespace, ROOT, file("b", 11), directory("a", 12))).isEmpty();
    assertThat(list(namespace, ROOT))
        .containsExactly(
            new DirectoryEntry(1, FileName.of("b"), 2, FileType.REGULAR),
            new DirectoryEntry(2, FileName.of("a"), 3, FileType.DIRECTORY));
    assertThat(namespace.find(ROOT, FileName.of("a")))
        .isEqualTo(new DirectoryEntry(2, FileName.of("a"), 3, FileType.DIRECTORY));
    assertThat(namespace.lastNumber()).isEqualTo(3);
    Inode child = requireNonNull(namespace.inode(2));
    assertThat(child.parent()).isEqualTo(ROOT);
    assertThat(child.checkedIn()).isEqualTo(namespace.session());
    assertThat(child.listing()).isNull();
    assertThat(child.attributes()).isEqualTo(file("b", 11).attributes());
  }

  @Test
  void finish_always_setsListingAndAttributesOfDirectory() {
    Attributes changed = Samples.attributes(Samples.DIRECTORY_MODE, 9, 1);
    namespace.beginImport(ROOT).finish(changed, listing(1));
    Inode root = requireNonNull(namespace.inode(ROOT));
    assertThat(root.listing()).isEqualTo(listing(1));
    assertThat(root.attributes()).isEqualTo(changed);
    assertThat(list(namespace, ROOT)).isEmpty();
  }

  @Test
  void list_afterPosition_continuesThereAndStopsWhenDeclined() {
    importAll(namespace, ROOT, file("a", 11), file("b", 12), file("c", 13), directory("d", 14));
    importAll(namespace, numberOf(namespace, ROOT, "d"), file("other", 15));
    List<String> seen = new ArrayList<>();
    namespace.list(
        ROOT,
        1,
        entry -> {
          seen.add(entry.name().toString());
          return entry.position() < 3;
        });
    assertThat(seen).containsExactly("b", "c");
    namespace.list(ROOT, 4, entry -> seen.add("past the end"));
    namespace.list(ROOT, Long.MAX_VALUE, entry -> seen.add("past every end"));
    assertThat(seen).hasSize(2);
  }

  @Test
  void list_visitorCallsIn_works() {
    importAll(namespace, ROOT, file("a", 11));
    namespace.list(
        ROOT,
        0,
        entry -> {
          assertThat(namespace.inode(entry.inode())).isNotNull();
          return true;
        });
  }

  @Test
  void names_anyBytesAndLengths_areKept() {
    List<FileName> names =
        List.of(
            FileName.of(new byte[] {(byte) 0xff, (byte) 0xfe, '\n'}),
            FileName.of(new byte[] {1}),
            FileName.of("é"),
            FileName.of("x".repeat(255)),
            FileName.ofLatin1("é".repeat(255)));
    List<SourceEntry> entries = new ArrayList<>();
    for (FileName name : names) {
      entries.add(file(name, 100 + entries.size(), 1));
    }
    importAll(namespace, ROOT, entries);
    reopen();
    assertThat(list(namespace, ROOT)).extracting(DirectoryEntry::name).isEqualTo(names);
    for (FileName name : names) {
      DirectoryEntry found = requireNonNull(namespace.find(ROOT, name));
      assertThat(namespace.path(found.inode())).isEqualTo(name);
    }
  }

  @Test
  void import_hundredThousandEntries_listsAllInOrder() {
    int count = 100_000;
    List<SourceEntry> entries =
        IntStream.range(0, count).mapToObj(i -> file("entry" + i, 1000 + i)).toList();
    importAll(namespace, ROOT, entries);
    int[] next = {0};
    namespace.list(
        ROOT,
        0,
        entry -> {
          assertThat(entry.position()).isEqualTo(next[0] + 1L);
          assertThat(entry.name()).isEqualTo(entries.get(next[0]).name());
          next[0]++;
          return true;
        });
    assertThat(next[0]).isEqualTo(count);
    long number = numberOf(namespace, ROOT, "entry77777");
    assertThat(importAll(namespace, ROOT, entries.subList(0, 50_000))).hasSize(50_000);
    assertThat(list(namespace, ROOT)).hasSize(50_000);
    assertThat(namespace.find(ROOT, FileName.of("entry77777"))).isNull();
    assertThat(namespace.inode(number)).isNotNull();
  }

  @Test
  void path_hundredDeep_joinsNames() {
    long parent = ROOT;
    List<String> names = new ArrayList<>();
    for (int depth = 1; depth <= 100; depth++) {
      String name = "level" + depth;
      importAll(namespace, parent, directory(name, 1000 + depth));
      parent = numberOf(namespace, parent, name);
      names.add(name);
    }
    assertThat(namespace.path(parent)).isEqualTo(FileName.of(String.join("/", names)));
    assertThat(namespace.path(ROOT)).isEqualTo(FileName.of(""));
    importAll(namespace, ROOT);
    assertThat(namespace.removeNameless(2)).isTrue();
    assertThat(namespace.path(parent)).isNull();
  }

  @Test
  void path_cycle_isNone() {
    Inode root = Samples.root();
    Samples.put(
        namespace, new Inode(5, root.identity(), 5, FileName.of("x"), 1, null, root.attributes()));
    assertThat(namespace.path(5)).isNull();
  }

  @Test
  void reimport_sameFiles_keepNumbersAndReportPrevious() {
    importAll(namespace, ROOT, file("a", 11), directory("d", 12));
    long d = numberOf(namespace, ROOT, "d");
    importAll(namespace, d, file("inner", 13));
    reopen();
    Inode before = requireNonNull(namespace.inode(d));
    Namespace.DirectoryImport running = namespace.beginImport(ROOT);
    SourceEntry grown =
        new SourceEntry(
            FileName.of("a"),
            new FileIdentity(3, 11), // as after a mount that renumbered devices
            Samples.attributes(Samples.REGULAR_MODE, 1, 999));
    List<Inode> previous = running.add(List.of(directory("d", 12), file("new", 14), grown));
    assertThat(previous).extracting(Inode::number).containsExactlyInAnyOrder(2L, d);
    assertThat(previous).contains(before);
    running.finish(directoryAttributes(), listing(2));
    assertThat(namespace.lostNames(0)).isEmpty();
    assertThat(list(namespace, ROOT))
        .extracting(DirectoryEntry::inode)
        .containsExactly(d, numberOf(namespace, ROOT, "new"), 2L);
    Inode after = requireNonNull(namespace.inode(d));
    assertThat(after.listing()).isEqualTo(before.listing());
    assertThat(after.checkedIn()).isEqualTo(2);
    assertThat(requireNonNull(namespace.inode(2)).attributes().size()).isEqualTo(999);
    assertThat(list(namespace, d)).hasSize(1);
  }

  @Test
  void reimport_replacedFile_getsNewNumberAndTheFormerLosesItsName() {
    importAll(namespace, ROOT, file("a", 11), file("b", 12));
    assertThat(importAll(namespace, ROOT, file("a", 99), directory("b", 12)))
        .containsExactly(2L, 3L);
    assertThat(list(namespace, ROOT)).extracting(DirectoryEntry::inode).containsExactly(4L, 5L);
  }

  @Test
  void reimport_replacedByImportThatWasNotFinished_isKnownInTheNextSession() {
    importAll(namespace, ROOT, file("a", 11));
    namespace.beginImport(ROOT).add(List.of(file("a", 99)));
    reopen();
    assertThat(importAll(namespace, ROOT, file("a", 99))).containsExactly(2L);
    Samples.forgetNameless(namespace);
    assertThat(namespace.inode(2)).isNull();
    assertThat(importAll(namespace, ROOT, file("a", 99))).isEmpty();
  }

  @Test
  void reimport_ofNothing_takesAllNamesAndLetsHardLinksGoByOtherNames() {
    importAll(namespace, ROOT, directory("d", 12), link("a", 11));
    long d = numberOf(namespace, ROOT, "d");
    importAll(namespace, d, file("b", 13), link("c", 11));
    assertThat(importAll(namespace, d)).hasSize(2);
    Samples.forgetNameless(namespace);
    assertThat(namespace.path(numberOf(namespace, ROOT, "a"))).isEqualTo(FileName.of("a"));
  }

  @Test
  void reimport_removedName_isLostAndItsInodeStays() {
    importAll(namespace, ROOT, file("a", 11), file("b", 12));
    assertThat(importAll(namespace, ROOT, file("b", 12))).containsExactly(2L);
    assertThat(namespace.find(ROOT, FileName.of("a"))).isNull();
    assertThat(namespace.inode(2)).isNotNull();
    assertThat(list(namespace, ROOT))
        .containsExactly(new DirectoryEntry(1, FileName.of("b"), 3, FileType.REGULAR));
  }

  @Test
  void reimport_renamedFile_getsNewNumber() {
    importAll(namespace, ROOT, file("old", 11));
    assertThat(importAll(namespace, ROOT, file("new", 11))).hasSize(1);
    assertThat(numberOf(namespace, ROOT, "new")).isEqualTo(3);
  }

  @Test
  void reimport_renamedHardLink_keepsNumberAndGoesByNewName() {
    importAll(namespace, ROOT, link("old", 11));
    assertThat(importAll(namespace, ROOT, link("new", 11))).hasSize(1);
    assertThat(numberOf(namespace, ROOT, "new")).isEqualTo(2);
    assertThat(namespace.removeNameless(2)).isFalse();
    assertThat(namespace.path(2)).isEqualTo(FileName.of("new"));
    assertThat(namespace.lostNames(0)).isEmpty();
  }

  @Test
  void hardLinks_inOneAndSeveralDirectories_areOneInode() {
    importAll(namespace, ROOT, link("a", 11), directory("d", 12), link("b", 11));
    long d = numberOf(namespace, ROOT, "d");
    importAll(namespace, d, link("c", 11));
    assertThat(numberOf(namespace, ROOT, "a")).isEqualTo(2);
    assertThat(numberOf(namespace, ROOT, "b")).isEqualTo(2);
    assertThat(numberOf(namespace, d, "c")).isEqualTo(2);
  }

  @Test
  void hardLink_addedToKnownFile_getsItsNumberWhereverItSorts() {
    importAll(namespace, ROOT, file("z", 11));
    importAll(namespace, ROOT, link("a", 11), link("z", 11));
    assertThat(numberOf(namespace, ROOT, "a")).isEqualTo(2);
    assertThat(numberOf(namespace, ROOT, "z")).isEqualTo(2);
  }

  @Test
  void hardLink_ofFileThatGotNumberElsewhere_joinsIt() {
    importAll(namespace, ROOT, file("a", 11), directory("d", 12));
    long d = numberOf(namespace, ROOT, "d");
    importAll(namespace, d, link("b", 11));
    assertThat(importAll(namespace, ROOT, link("a", 11), directory("d", 12))).containsExactly(2L);
    assertThat(numberOf(namespace, ROOT, "a")).isEqualTo(numberOf(namespace, d, "b"));
  }

  @Test
  void hardLink_nameItGoesByRemoved_goesByAnother() {
    importAll(namespace, ROOT, directory("d", 12), link("a", 11));
    long d = numberOf(namespace, ROOT, "d");
    importAll(namespace, d, link("b", 11));
    long number = numberOf(namespace, ROOT, "a");
    assertThat(namespace.path(number)).isEqualTo(FileName.of("d/b"));
    assertThat(importAll(namespace, d)).containsExactly(number);
    assertThat(namespace.removeNameless(number)).isFalse();
    assertThat(namespace.path(number)).isEqualTo(FileName.of("a"));
    assertThat(importAll(namespace, ROOT, directory("d", 12))).containsExactly(number);
    assertThat(namespace.removeNameless(number)).isTrue();
  }

  @Test
  void hardLink_withAnotherNameBeforeItIsRemoved_stays() {
    importAll(namespace, ROOT, link("a", 11));
    assertThat(importAll(namespace, ROOT)).containsExactly(2L);
    importAll(namespace, ROOT, link("b", 11));
    assertThat(namespace.removeNameless(2)).isFalse();
    assertThat(namespace.path(2)).isEqualTo(FileName.of("b"));
    assertThat(namespace.lostNames(0)).isEmpty();
  }

  @Test
  void hardLink_afterItsInodeWasRemoved_getsNewNumber() {
    importAll(namespace, ROOT, link("a", 11));
    importAll(namespace, ROOT);
    assertThat(namespace.removeNameless(2)).isTrue();
    importAll(namespace, ROOT, link("b", 11));
    assertThat(numberOf(namespace, ROOT, "b")).isEqualTo(3);
  }

  @Test
  void import_unverifiedEntries_areNotCheckedAndJoinNoFile() {
    importAll(namespace, ROOT, link("a", 11), directory("d", 12));
    long d = numberOf(namespace, ROOT, "d");
    importAll(
        namespace,
        d,
        link("b", 11).unverified(),
        link("c", 11).unverified(),
        directory("e", 13).unverified());
    List<Long> numbers = list(namespace, d).stream().map(DirectoryEntry::inode).toList();
    assertThat(numbers).doesNotContain(numberOf(namespace, ROOT, "a")).doesNotHaveDuplicates();
    assertThat(numbers)
        .allMatch(n -> requireNonNull(namespace.inode(n)).checkedIn() == Inode.NEVER);
    assertThat(requireNonNull(namespace.inode(numberOf(namespace, ROOT, "a"))).checkedIn())
        .isEqualTo(namespace.session());
  }

  @Test
  void reimport_byUnverifiedEntries_keepsNumbersToBeCheckedAgain() {
    importAll(namespace, ROOT, file("a", 11), link("b", 12), link("c", 12));
    long a = numberOf(namespace, ROOT, "a");
    importAll(namespace, ROOT, file("a", 11).unverified(), link("b", 12).unverified());
    assertThat(numberOf(namespace, ROOT, "a")).isEqualTo(a);
    assertThat(requireNonNull(namespace.inode(a)).checkedIn()).isEqualTo(Inode.NEVER);
  }

  @Test
  void import_interruptedThenDone_isAsIfDoneOnce() {
    importAll(namespace, ROOT, file("a", 11), file("gone", 12), file("b", 13));
    Namespace.DirectoryImport interrupted = namespace.beginImport(ROOT);
    interrupted.add(List.of(file("b", 13), file("fleeting", 14)));
    reopen();
    assertThat(requireNonNull(namespace.inode(ROOT)).listing()).isNull();
    assertThat(importAll(namespace, ROOT, file("a", 11), file("b", 13)))
        .as("gone, fleeting")
        .containsExactly(3L, 5L);
    assertThat(list(namespace, ROOT))
        .containsExactly(
            new DirectoryEntry(1, FileName.of("a"), 2, FileType.REGULAR),
            new DirectoryEntry(2, FileName.of("b"), 4, FileType.REGULAR));
  }

  @Test
  void import_interruptedInSameSession_isAsIfDoneOnce() {
    namespace.beginImport(ROOT).add(List.of(file("fleeting", 14), file("a", 11)));
    assertThat(importAll(namespace, ROOT, file("a", 11))).hasSize(1);
    assertThat(list(namespace, ROOT))
        .containsExactly(new DirectoryEntry(1, FileName.of("a"), 3, FileType.REGULAR));
  }

  @Test
  void import_afterFinish_isRefused() {
    Namespace.DirectoryImport done = namespace.beginImport(ROOT);
    done.finish(directoryAttributes(), listing(1));
    assertThatThrownBy(() -> done.add(List.of())).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> done.finish(directoryAttributes(), listing(1)))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void beginImport_unknownDirectory_fails() {
    assertThatThrownBy(() -> namespace.beginImport(99)).isInstanceOf(StateException.class);
  }

  @Test
  void imports_concurrent_neverShareNumberExceptHardLinks() throws Exception {
    int directories = 12;
    int files = 3000;
    List<SourceEntry> entries = new ArrayList<>();
    for (int d = 0; d < directories; d++) {
      entries.add(directory("d" + d, 100 + d));
    }
    importAll(namespace, ROOT, entries);
    ExecutorService threads = Executors.newFixedThreadPool(4);
    try {
      List<Callable<List<Long>>> imports = new ArrayList<>();
      for (int d = 0; d < directories; d++) {
        long number = numberOf(namespace, ROOT, "d" + d);
        List<SourceEntry> inner = new ArrayList<>();
        for (int i = 0; i < files; i++) {
          inner.add(file("f" + i, 1_000_000L + (long) d * files + i));
        }
        inner.add(link("shared", 500));
        imports.add(() -> importAll(namespace, number, inner));
      }
      for (Future<List<Long>> done : threads.invokeAll(imports)) {
        assertThat(done.get()).isEmpty();
      }
    } finally {
      threads.shutdownNow();
    }
    List<Long> numbers = new ArrayList<>();
    for (int d = 0; d < directories; d++) {
      for (DirectoryEntry entry : list(namespace, numberOf(namespace, ROOT, "d" + d))) {
        numbers.add(entry.inode());
      }
    }
    assertThat(numbers).hasSize(directories * (files + 1));
    assertThat(numbers.stream().distinct().count()).isEqualTo((long) directories * files + 1);
  }

  @Test
  void removeNameless_directoryWithEverything_leavesCopiesAndWhatWasBelow() {
    importAll(namespace, ROOT, directory("d", 11));
    importAll(namespace, 2, file("inner", 12));
    namespace.putSymbolicLinkTarget(2, CHANGE, FileName.of("target"));
    namespace.putExtendedAttributes(2, CHANGE, Map.of());
    namespace.putCopy(2, copy("ssd", 1));
    namespace.putCopy(3, copy("ssd", 2));
    importAll(namespace, ROOT);
    assertThat(namespace.removeNameless(2)).isTrue();
    assertThat(namespace.inode(2)).isNull();
    assertThat(namespace.find(2, FileName.of("inner"))).isNull();
    assertThat(list(namespace, 2)).isEmpty();
    assertThat(namespace.symbolicLinkTarget(2, CHANGE)).isNull();
    assertThat(namespace.extendedAttributes(2, CHANGE)).isNull();
    assertThat(namespace.copies(2)).hasSize(1);
    assertThat(namespace.copies(3)).hasSize(1);
    assertThat(namespace.inode(3)).as("lost its name").isNotNull();
    reopen();
    assertThat(namespace.lostNames(0)).containsExactly(2L, 3L);
    assertThat(namespace.removeNameless(2)).as("is removed already").isTrue();
    Samples.forgetNameless(namespace);
    assertThat(namespace.inode(3)).isNull();
    assertThat(namespace.lostNames(0)).isEmpty();
  }

  @Test
  void whatTheSourceSaid_put_isReadBackForItsChangeTimeOnly() {
    FileName target = FileName.of(new byte[] {'/', (byte) 0x80});
    namespace.putSymbolicLinkTarget(7, CHANGE, target);
    FileName name = FileName.of("user.note");
    namespace.putExtendedAttributes(7, CHANGE, Map.of(name, new byte[] {0, -1}));
    namespace.putExtendedAttributes(8, CHANGE, Map.of());
    FileName list = FileName.of(new byte[] {2, 0, 0, 0, -1});
    namespace.putAccessList(7, CHANGE, list);
    namespace.putAccessList(8, CHANGE, FileName.of(""));
    reopen();
    assertThat(namespace.symbolicLinkTarget(7, CHANGE)).isEqualTo(target);
    Map<FileName, byte[]> attributes = requireNonNull(namespace.extendedAttributes(7, CHANGE));
    assertThat(attributes).containsOnlyKeys(name);
    assertThat(attributes.get(name)).containsExactly(0, -1);
    assertThat(namespace.extendedAttributes(8, CHANGE)).isNotNull().isEmpty();
    assertThat(namespace.accessList(7, CHANGE)).isEqualTo(list);
    assertThat(namespace.accessList(8, CHANGE)).isEqualTo(FileName.of(""));
    assertThat(namespace.accessList(9, CHANGE)).isNull();
    Instant later = CHANGE.plusNanos(1);
    assertThat(namespace.symbolicLinkTarget(7, later)).isNull();
    assertThat(namespace.extendedAttributes(7, later)).isNull();
    assertThat(namespace.accessList(7, later)).isNull();
    Inode root = Samples.root();
    Samples.put(
        namespace,
        new Inode(7, root.identity(), ROOT, FileName.of("x"), 1, null, root.attributes()));
    assertThat(namespace.removeNameless(7)).isTrue();
    assertThat(namespace.symbolicLinkTarget(7, CHANGE)).isNull();
    assertThat(namespace.extendedAttributes(7, CHANGE)).isNull();
    assertThat(namespace.accessList(7, CHANGE)).isNull();
  }

  @Test
  void import_withAccessLists_keepsThem() {
    SourceEntry entry = file("f", 11);
    Attributes attributes = entry.attributes();
    FileName list = FileName.of("list");
    importAll(namespace, ROOT, new SourceEntry(entry.name(), entry.identity(), attributes, list));
    assertThat(namespace.accessList(2, attributes.changeTime())).isEqualTo(list);
    importAll(namespace, ROOT, entry);
    assertThat(namespace.accessList(2, attributes.changeTime())).isEqualTo(list);
  }

  @Test
  void copies_onePerTier_areReplacedAndRemoved() {
    namespace.putCopy(7, copy("ssd", 1, 2, 3));
    namespace.putCopy(7, copy("pm"));
    namespace.putCopy(7, copy("ssd", 4));
    namespace.putCopy(8, copy("pm", 5));
    assertThat(namespace.copies(7)).containsExactlyInAnyOrder(copy("ssd", 4), copy("pm"));
    assertThat(namespace.copy(7, "ssd")).isEqualTo(copy("ssd", 4));
    assertThat(namespace.copy(7, "p")).isNull();
    assertThat(namespace.copy(9, "pm")).isNull();
    namespace.removeCopy(7, "pm");
    reopen();
    assertThat(namespace.copies(7)).containsExactly(copy("ssd", 4));
  }

  @Test
  void listCopies_fromNumber_passesInOrderUntilDeclined() {
    for (long number : new long[] {300, 2, 70_000}) {
      namespace.putCopy(number, copy("ssd", (int) number));
    }
    List<Long> seen = new ArrayList<>();
    namespace.listCopies(3, (number, copy) -> seen.add(number));
    assertThat(seen).containsExactly(300L, 70_000L);
    seen.clear();
    namespace.listCopies(
        0,
        (number, copy) -> {
          seen.add(number);
          return false;
        });
    assertThat(seen).containsExactly(2L);
  }

  @Test
  void counters_put_survive() {
    namespace.putCounter("a", Long.MIN_VALUE);
    namespace.putCounter("", 1);
    reopen();
    assertThat(namespace.counter("a")).isEqualTo(Long.MIN_VALUE);
    assertThat(namespace.counter("")).isEqualTo(1);
  }

  @Test
  void counters_ofAPrefix_areListedUntilRemoved() {
    namespace.putCounter("a", 1);
    namespace.putCounter("a/1", 2);
    namespace.putCounter("a/20", 3);
    namespace.putCounter("b", 4);
    reopen();
    assertThat(namespace.counters("a/")).isEqualTo(Map.of("1", 2L, "20", 3L));

    namespace.removeCounter("a/1");
    assertThat(namespace.counter("a/1")).isNull();
    assertThat(namespace.counters("a/")).isEqualTo(Map.of("20", 3L));
    assertThat(namespace.counters("c")).isEmpty();
  }

  @Test
  void reopen_afterClose_raisesSessionAndKeepsEverything() {
    assertThat(namespace.session()).isEqualTo(1);
    assertThat(namespace.stoppedCleanly()).isTrue();
    importAll(namespace, ROOT, file("a", 11));
    reopen();
    assertThat(namespace.session()).isEqualTo(2);
    assertThat(namespace.stoppedCleanly()).isTrue();
    assertThat(namespace.lastNumber()).isEqualTo(2);
    assertThat(numberOf(namespace, ROOT, "a")).isEqualTo(2);
    assertThat(requireNonNull(namespace.inode(2)).checkedIn()).isEqualTo(1);
    importAll(namespace, ROOT, file("a", 11), file("b", 12));
    assertThat(numberOf(namespace, ROOT, "b")).isEqualTo(3);
  }

  @Test
  void close_twice_isHarmlessAndCallsAfterItFail() {
    Namespace.DirectoryImport running = namespace.beginImport(ROOT);
    namespace.close();
    namespace.close();
    assertThatThrownBy(() -> namespace.inode(1)).isInstanceOf(StateException.class);
    assertThatThrownBy(() -> namespace.copies(1)).isInstanceOf(StateException.class);
    assertThatThrownBy(() -> Samples.put(namespace, Samples.root()))
        .isInstanceOf(StateException.class);
    assertThatThrownBy(() -> running.add(List.of(file("a", 1)))).isInstanceOf(StateException.class);
  }
}
