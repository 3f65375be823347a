package io.pmfs.fs;

import static io.pmfs.fs.PmfsFileSystemTest.errnoOf;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.Errno;
import io.pmfs.source.FakeStore;
import io.pmfs.source.FaultyStore.Operation;
import io.pmfs.source.SourceOperations;
import io.pmfs.tasks.Dataset;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
final class AccessListsTest {
  private static final long ROOM = 1L << 20;
  private static final String ACCESS = "system.posix_acl_access";
  private static final FileName NONE = FileName.of("");

  /** No permission for the owning group, read permission for user 1000 and others. */
  private static final byte[] LIST = list(4);

  private static final byte[] CLOSED = list(0);

  @TempDir private Path directory;

  private static byte[] list(int named) {
    ByteBuffer out = ByteBuffer.allocate(4 + 5 * 8).order(ByteOrder.LITTLE_ENDIAN).putInt(2);
    int[][] entries = {{1, 6, -1}, {2, named, 1000}, {4, 0, -1}, {0x10, 4, -1}, {0x20, 4, -1}};
    for (int[] entry : entries) {
      out.putShort((short) entry[0]).putShort((short) entry[1]).putInt(entry[2]);
    }
    return out.array();
  }

  private static void sample(FakeStore store) {
    store.directory("a");
    for (int i = 0; i < 300; i++) {
      store.file("a/" + i, i, 10);
    }
    store.file("listed", 1, 10);
    store.xattr("listed", ACCESS, LIST);
    store.symbolicLink("link", "listed");
  }

  private Dataset dataset() throws Exception {
    return new Dataset(directory, AccessListsTest::sample, ROOM);
  }

  private static FileName of(Dataset dataset, String path) throws Exception {
    return dataset.fs.accessLists().of(dataset.number(path));
  }

  private static int leastMode(Dataset dataset, String path) throws Exception {
    Inode inode = dataset.fs.inode(dataset.number(path));
    return dataset.fs.accessLists().withLeastRights(inode).attributes().mode();
  }

  @Test
  void of_file_isKeptUntilItsChangeTimeMoves() throws Exception {
    try (Dataset dataset = dataset()) {
      for (int i = 0; i < 3; i++) {
        assertThat(of(dataset, "listed")).isEqualTo(FileName.of(LIST));
        assertThat(of(dataset, "a/1")).isEqualTo(NONE);
        assertThat(of(dataset, "link")).isEqualTo(NONE);
      }
      assertThat(dataset.asked().xattrs()).as("two files, the root once").isEqualTo(3);

      dataset.remount(store -> {});
      assertThat(of(dataset, "listed")).isEqualTo(FileName.of(LIST));
      assertThat(of(dataset, "a/1")).isEqualTo(NONE);
      assertThat(dataset.asked().xattrs()).isZero();

      dataset.remount(store -> store.xattr("a/1", ACCESS, CLOSED));
      assertThat(of(dataset, "a/1")).isEqualTo(FileName.of(CLOSED));
    }
  }

  @Test
  void follow_listsComeWithTheAttributes() throws Exception {
    try (Dataset dataset = dataset()) {
      dataset.fs.accessLists().follow();
      dataset.list("");
      dataset.list("a");
      long imported = dataset.source.operations().xattrs();
      for (int i = 0; i < 300; i++) {
        assertThat(of(dataset, "a/" + i)).isEqualTo(NONE);
      }
      assertThat(of(dataset, "listed")).isEqualTo(FileName.of(LIST));
      assertThat(dataset.source.operations().xattrs()).isEqualTo(imported);
    }
  }

  @Test
  void follow_filesOfAnEarlierSession_costOneQuestionEach() throws Exception {
    try (Dataset dataset = dataset()) {
      dataset.list("a");
      dataset.remount(store -> store.xattr("a/1", ACCESS, LIST));
      dataset.fs.accessLists().follow();
      long number = dataset.number("a");
      SourceOperations before = dataset.source.operations();
      for (int i = 0; i < 300; i++) {
        dataset.fs.inode(dataset.fs.find(number, FileName.of("" + i)).inode());
        assertThat(of(dataset, "a/" + i)).isEqualTo(i == 1 ? FileName.of(LIST) : NONE);
      }
      SourceOperations after = dataset.source.operations();
      // Also for the directory, and twice for the file that changed, or by two threads at once.
      assertThat(after.stats() - before.stats()).isBetween(300L, 303L);
      assertThat(after.xattrs() - before.xattrs()).isBetween(300L, 303L);
    }
  }

  @Test
  void of_sourceThatKeepsNoLists_asksOnce() throws Exception {
    try (Dataset dataset =
        new Dataset(
            directory,
            store -> {
              sample(store);
              store.keepNoLists();
            },
            ROOM)) {
      dataset.fs.accessLists().follow();
      dataset.list("a");
      for (int i = 0; i < 300; i++) {
        assertThat(of(dataset, "a/" + i)).isEqualTo(NONE);
      }
      assertThat(dataset.asked().xattrs()).isEqualTo(1);
    }
  }

  @Test
  void of_sourceFails_failsAndAsksAgain() throws Exception {
    try (Dataset dataset = dataset()) {
      long number = dataset.number("listed");
      dataset.faulty.on(Operation.ACCESS).fail(Errno.EHOSTDOWN);
      assertThat(errnoOf(() -> dataset.fs.accessLists().of(number))).isEqualTo(Errno.EHOSTDOWN);
      Inode inode = dataset.fs.inode(number);
      assertThat(errnoOf(() -> dataset.fs.accessLists().withLeastRights(inode)))
          .isEqualTo(Errno.EHOSTDOWN);
      dataset.faulty.clearFaults();
      assertThat(dataset.fs.accessLists().of(number)).isEqualTo(FileName.of(LIST));
    }
  }

  @Test
  void of_anotherFileAtThePath_fails() throws Exception {
    try (Dataset dataset = dataset()) {
      long number = dataset.number("listed");
      dataset.store.rename("listed", "elsewhere");
      dataset.store.file("listed", 2, 10);
      assertThat(errnoOf(() -> dataset.fs.accessLists().of(number))).isEqualTo(Errno.ESTALE);
    }
  }

  @Test
  void withLeastRights_ofAListed_givesNobodyMore_andIsRememberedInLaterSessions() throws Exception {
    try (Dataset dataset = dataset()) {
      assertThat(dataset.fs.accessLists().areFound()).isFalse();
      assertThat(leastMode(dataset, "a/1")).isEqualTo(0100644);
      assertThat(dataset.fs.accessLists().areFound()).isFalse();
      assertThat(leastMode(dataset, "listed")).isEqualTo(0100604);
      assertThat(dataset.fs.accessLists().areFound()).isTrue();
      dataset.remount(store -> store.xattr("listed", ACCESS, CLOSED));
      assertThat(dataset.fs.accessLists().areFound()).isTrue();
      assertThat(leastMode(dataset, "listed")).isEqualTo(0100600);
    }
  }

  @Test
  void areFound_rootHasOneOrGivesOne_isTrue() throws Exception {
    for (String name : new String[] {ACCESS, "system.posix_acl_default"}) {
      Path state = directory.resolve(name);
      try (Dataset dataset = new Dataset(state, store -> store.xattr("", name, LIST), ROOM)) {
        assertThat(dataset.fs.accessLists().areFound()).as(name).isTrue();
      }
    }
  }

  @Test
  void areAppliedByKernel_isTrueForTheSessionAlone() throws Exception {
    try (Dataset dataset = dataset()) {
      assertThat(dataset.fs.accessLists().areAppliedByKernel()).isFalse();
      dataset.fs.accessLists().applyByKernel();
      assertThat(dataset.fs.accessLists().areAppliedByKernel()).isTrue();
      dataset.remount(store -> {});
      assertThat(dataset.fs.accessLists().areAppliedByKernel()).isFalse();
    }
  }
}
