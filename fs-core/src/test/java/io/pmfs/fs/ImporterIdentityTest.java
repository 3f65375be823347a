package io.pmfs.fs;

import static io.pmfs.fs.ImporterTest.ROOM;
import static io.pmfs.fs.ImporterTest.content;
import static io.pmfs.fs.PmfsFileSystemTest.errnoOf;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.source.FakeStore;
import io.pmfs.tasks.Dataset;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongUnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Which file a name is: hard links, and sources that change inode numbers. */
@Timeout(60)
final class ImporterIdentityTest {
  @TempDir private Path directory;

  private Dataset sample() throws Exception {
    return new Dataset(directory, ImporterTest::sample, ROOM);
  }

  // Hard links.

  private Dataset linked() throws Exception {
    return new Dataset(
        directory,
        store -> {
          store.directory("a");
          store.directory("b");
          store.file("a/x", 1, 100);
          store.hardLink("b/y", "a/x");
        },
        ROOM);
  }

  @Test
  void hardLinks_ofOneFile_areOneInodeReadOnce() throws Exception {
    try (Dataset dataset = linked()) {
      var numbers = dataset.readAll();

      assertThat(numbers.get("a/x")).isEqualTo(numbers.get("b/y"));
      assertThat(dataset.inode("b/y").attributes().linkCount()).isEqualTo(2);
      assertThat(dataset.asked().bytes()).isEqualTo(100);
      assertThat(dataset.copyCount()).isEqualTo(1);
    }
  }

  @Test
  void hardLinks_bothNamesRemoved_areForgottenWithTheirCopy() throws Exception {
    try (Dataset dataset = linked()) {
      long number = ImporterTest.of(dataset.readAll(), "a/x");
      dataset.remount(
          store -> {
            store.remove("a/x");
            store.remove("b/y");
          });
      dataset.readAll();

      assertThat(dataset.namespace.inode(number)).isNull();
      assertThat(dataset.copyCount()).isZero();
    }
  }

  @Test
  void hardLinks_oneNameRemoved_theOtherGoesOn() throws Exception {
    for (String gone : List.of("a/x", "b/y")) {
      for (boolean goneFirst : new boolean[] {true, false}) {
        try (Dataset dataset =
            new Dataset(
                directory.resolve(gone.substring(0, 1) + goneFirst),
                store -> {
                  store.directory("a");
                  store.directory("b");
                  store.file("a/x", 1, 100);
                  store.hardLink("b/y", "a/x");
                },
                ROOM)) {
          String left = gone.equals("a/x") ? "b/y" : "a/x";
          dataset.readAll();
          dataset.remount(store -> store.remove(gone));
          if (goneFirst) {
            assertThat(errnoOf(() -> dataset.number(gone))).isEqualTo(Errno.ENOENT);
          }

          assertThat(dataset.inode(left).attributes())
              .as("%s without %s", left, gone)
              .isEqualTo(dataset.store.expectedStatus(FileName.of(left)).attributes());
          assertThat(dataset.read(left)).isEqualTo(content(1, 100));
          assertThat(dataset.asked().bytes()).isZero();
          assertThat(errnoOf(() -> dataset.number(gone))).isEqualTo(Errno.ENOENT);
          assertThat(dataset.read(left)).isEqualTo(content(1, 100));
        }
      }
    }
  }

  @Test
  void hardLinks_directoryOfOneNameRemoved_theOtherGoesOn() throws Exception {
    for (String gone : List.of("a", "b")) {
      for (boolean goneFirst : new boolean[] {true, false}) {
        try (Dataset dataset =
            new Dataset(
                directory.resolve(gone + goneFirst),
                store -> {
                  store.directory("a");
                  store.directory("b");
                  store.file("a/x", 1, 100);
                  store.hardLink("b/x", "a/x");
                },
                ROOM)) {
          String left = gone.equals("a") ? "b/x" : "a/x";
          dataset.readAll();
          dataset.remount(
              store -> {
                store.remove(gone + "/x");
                store.remove(gone);
              });
          if (goneFirst) {
            assertThat(dataset.names("")).hasSize(1);
          }

          assertThat(dataset.read(left)).as("%s without %s", left, gone).isEqualTo(content(1, 100));
          assertThat(dataset.names("")).hasSize(1);
          dataset.remount(store -> {});
          assertThat(dataset.read(left)).isEqualTo(content(1, 100));
        }
      }
    }
  }

  @Test
  void hardLinks_oneNameIsAnotherFileNow_theOtherKeepsItsContent() throws Exception {
    for (String replaced : List.of("a/x", "b/y")) {
      try (Dataset dataset =
          new Dataset(
              directory.resolve(replaced.substring(0, 1)),
              store -> {
                store.directory("a");
                store.directory("b");
                store.file("a/x", 1, 100);
                store.hardLink("b/y", "a/x");
              },
              ROOM)) {
        String left = replaced.equals("a/x") ? "b/y" : "a/x";
        dataset.readAll();
        dataset.remount(store -> store.file(replaced, 2, 200));

        assertThat(dataset.inode(left).attributes())
            .as("%s beside the new %s", left, replaced)
            .isEqualTo(dataset.store.expectedStatus(FileName.of(left)).attributes());
        assertThat(dataset.read(left)).isEqualTo(content(1, 100));
        assertThat(dataset.read(replaced)).isEqualTo(content(2, 200));
        assertThat(dataset.number(left)).isNotEqualTo(dataset.number(replaced));
      }
    }
  }

  @Test
  void hardLinks_allOtherNamesAreOtherFilesNow_theLastKeepsItsContent() throws Exception {
    List<String> names = List.of("a/x", "b/x", "c/x", "d/x");
    for (String left : names) {
      try (Dataset dataset =
          new Dataset(
              directory.resolve(left.substring(0, 1)),
              store -> {
                names.forEach(name -> store.directory(name.substring(0, 1)));
                store.file("a/x", 1, 100);
                names.subList(1, 4).forEach(name -> store.hardLink(name, "a/x"));
              },
              ROOM)) {
        dataset.readAll();
        dataset.remount(
            store -> {
              for (String name : names) {
                if (!name.equals(left)) {
                  store.file(name, 2, 100);
                }
              }
            });

        assertThat(dataset.read(left)).as(left).isEqualTo(content(1, 100));
        for (String name : names) {
          assertThat(dataset.read(name)).isEqualTo(content(name.equals(left) ? 1 : 2, 100));
        }
      }
    }
  }

  @Test
  void hardLinks_changedInPlace_areNewUnderBothNames() throws Exception {
    try (Dataset dataset = linked()) {
      dataset.readAll();
      dataset.remount(store -> store.write("a/x", 5, 100));

      assertThat(dataset.read("b/y")).isEqualTo(content(5, 100));
      assertThat(dataset.read("a/x")).isEqualTo(content(5, 100));
    }
  }

  @Test
  void hardLinks_newNameInAnUnlistedDirectory_isTheSameInode() throws Exception {
    try (Dataset dataset = linked()) {
      dataset.readAll();
      dataset.remount(store -> store.hardLink("b/z", "a/x"));

      assertThat(dataset.number("b/z")).isEqualTo(dataset.number("a/x"));
      assertThat(dataset.inode("a/x").attributes().linkCount()).isEqualTo(3);
      assertThat(dataset.read("b/z")).isEqualTo(content(1, 100));
      assertThat(dataset.asked().bytes()).isZero();
    }
  }

  // Numbers that change.

  @Test
  void renumbered_betweenMounts_nothingIsListedOrFetchedAgain() throws Exception {
    try (Dataset dataset = sample()) {
      var before = dataset.readAll();
      assertThat(dataset.namespace.renumbered()).isZero();
      dataset.remount(store -> store.renumber(inode -> inode + 777));
      var after = dataset.readAll();

      assertThat(after).isEqualTo(before);
      assertThat(dataset.asked().bytes()).isZero();
      assertThat(dataset.asked().lists()).isZero();
      assertThat(dataset.copyCount()).isEqualTo(4);
      assertThat(dataset.namespace.renumbered()).as("all but the root").isEqualTo(6);
      dataset.remount(store -> {});
      assertThat(dataset.namespace.renumbered()).as("remembered").isPositive();
    }
  }

  @Test
  void renumbered_whileMounted_isReadAndCopied() throws Exception {
    try (Dataset dataset = sample()) {
      dataset.readNames();
      dataset.store.renumber(inode -> inode * 3);
      assertThat(dataset.read("a/f")).isEqualTo(content(1, 100));
      dataset.readAll();
      assertThat(dataset.copyCount()).isEqualTo(4);
      assertThat(dataset.namespace.renumbered()).isPositive();
    }
  }

  /** New numbers at each request, like an NFS client that keeps few inodes. */
  @Test
  void renumbered_atEachLook_isReadAndCopied() throws Exception {
    try (Dataset dataset = sample()) {
      AtomicInteger looks = new AtomicInteger();
      dataset.store.renumber(inode -> 5000 + looks.incrementAndGet());
      dataset.readAll();
      dataset.remount(store -> {});
      dataset.readAll();
      assertThat(dataset.asked().bytes()).isZero();
      assertThat(dataset.copyCount()).isEqualTo(4);
    }
  }

  @Test
  void renumbered_oneFileReplacedAndOneDirectoryGrown_onlyTheseAreFetched() throws Exception {
    try (Dataset dataset = sample()) {
      var before = dataset.readAll();
      Instant modified = dataset.inode("a/f").attributes().modificationTime();
      dataset.remount(
          store -> {
            store.renumber(inode -> inode + 777);
            store.file("a/f", 9, 100);
            store.setModified("a/f", modified);
            store.file("a/new", 5, 500);
          });
      var after = dataset.readAll();

      assertThat(dataset.asked().bytes()).isEqualTo(600);
      assertThat(dataset.read("a/f")).isEqualTo(content(9, 100));
      assertThat(dataset.read("a/new")).isEqualTo(content(5, 500));
      assertThat(ImporterTest.of(after, "a/f")).isNotEqualTo(ImporterTest.of(before, "a/f"));
      for (String same : List.of("a", "a/b", "a/b/h", "a/g", "top")) {
        assertThat(ImporterTest.of(after, same)).as(same).isEqualTo(ImporterTest.of(before, same));
      }
    }
  }

  @Test
  void renumbered_asAnotherFilesNumber_isNeverThatFile() throws Exception {
    for (boolean keepsTimes : new boolean[] {true, false}) {
      for (boolean whileMounted : new boolean[] {true, false}) {
        try (Dataset dataset =
            new Dataset(
                directory.resolve(keepsTimes + "-" + whileMounted),
                store -> {
                  for (String name : List.of("a", "b", "c")) {
                    store.directory(name);
                  }
                  store.file("a/x", 1, 100);
                  store.file("a/y", 2, 100);
                  store.hardLink("b/x", "a/x");
                  store.hardLink("c/y", "a/y");
                  // The coarse times of old protocols, shared by many files.
                  Instant second = store.now().truncatedTo(ChronoUnit.SECONDS);
                  store.setModified("a/x", second);
                  store.setModified("a/y", second);
                  if (!keepsTimes) {
                    store.keepNoChangeTimes();
                  }
                },
                ROOM)) {
          dataset.read("a/x");
          dataset.read("a/y");
          dataset.awaitIdle();
          long x = dataset.inode("a/x").identity().inode();
          long y = dataset.inode("a/y").identity().inode();
          FakeStore store = dataset.store;
          LongUnaryOperator swapped = inode -> inode == x ? y : inode == y ? x : inode;
          if (whileMounted) {
            store.renumber(swapped);
          } else {
            dataset.remount(next -> next.renumber(swapped));
          }

          String as = "change times %s, while mounted %s".formatted(keepsTimes, whileMounted);
          assertThat(dataset.read("b/x")).as(as).isEqualTo(content(1, 100));
          assertThat(dataset.read("c/y")).as(as).isEqualTo(content(2, 100));
          assertThat(dataset.read("a/x")).as(as).isEqualTo(content(1, 100));
          assertThat(dataset.read("a/y")).as(as).isEqualTo(content(2, 100));
          dataset.remount(next -> next.renumber(LongUnaryOperator.identity()));
          for (String path : List.of("c/y", "a/y", "b/x", "a/x")) {
            assertThat(dataset.read(path))
                .as(as)
                .isEqualTo(content(path.endsWith("x") ? 1 : 2, 100));
          }
        }
      }
    }
  }
}
