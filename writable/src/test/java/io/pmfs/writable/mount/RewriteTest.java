package io.pmfs.writable.mount;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PosixAcl;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * New content of files that the source has: what is seen there meanwhile, and under which names.
 */
class RewriteTest {
  private static final String OLD = "file 644 0123456789";
  private static final String NEW = "file 644 new";

  @TempDir Path directory;

  private final List<Map<String, String>> seen = new ArrayList<>();
  private Driver driver;
  private int root;

  @BeforeEach
  void open() throws Exception {
    driver = new Driver(directory);
    root = driver.calls.openRoot(Driver.SOURCE);
    int file = driver.calls.open(root, Driver.name("a"), OutputCalls.O_CREAT, 0644);
    driver.calls.write(file, Driver.bytes("0123456789"), 0);
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private FakeCalls.Node source(String name) {
    return Objects.requireNonNull(driver.calls.sourceRoot().children.get(Driver.name(name)));
  }

  private void link(String name) throws Exception {
    driver.calls.link(root, Driver.name("a"), root, Driver.name(name));
  }

  /** Remembers what the source shows after each call, and refuses some. */
  private void watch(String refused, int times) {
    int[] left = {times};
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals(refused) && left[0]-- > 0) {
              throw new FsException(Errno.EACCES, refused);
            }
          }

          @Override
          public void after(String call, FileName name) {
            seen.add(driver.sourceTree());
          }
        });
  }

  @Test
  void namesThatWereLookedAt_getTheNewVersionWhole() throws Exception {
    link("b");
    assertThat(driver.read("a")).isEqualTo(driver.read("b"));
    watch("nothing", 0);
    driver.put("a", "new");
    driver.drainAll();
    assertThat(seen).allSatisfy(tree -> assertThat(tree.values()).isSubsetOf(OLD, NEW));
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", NEW, "b", NEW));
    assertThat(source("a")).isSameAs(source("b"));
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
  }

  @Test
  void nameThatTheMountDoesNotKnow_getsTheNewVersionToo() throws Exception {
    driver.node("a");
    link("unknown");
    watch("nothing", 0);
    driver.put("a", "new");
    driver.drainAll();
    assertThat(seen).allSatisfy(tree -> assertThat(tree.get("a")).hasSizeGreaterThanOrEqualTo(12));
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", NEW, "unknown", NEW));
    assertThat(source("a")).isSameAs(source("unknown"));
    assertThat(driver.temporaries()).isEmpty();
  }

  @Test
  void namesThatMayNotBeReplaced_areAllReported_alsoByTheNextProcess() throws Exception {
    for (String name : List.of("b", "c")) {
      link(name);
    }
    for (String name : List.of("a", "b", "c")) {
      driver.node(name);
    }
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("rename") && !name.equals(Driver.name("a"))) {
              throw new FsException(Errno.EACCES, call);
            }
          }
        });
    driver.put("a", "new");
    driver.drainAll();
    assertThat(driver.mount().drainStatus().failures())
        .extracting("path")
        .containsExactly("b", "c");
    driver.restart();
    assertThat(driver.mount().drainStatus().failures())
        .extracting("path")
        .containsExactly("b", "c");
    driver.mount().acknowledge();
    driver.restart();
    assertThat(driver.mount().drainStatus().failures()).isEmpty();
  }

  @Test
  void thirdName_isKnownToo() throws Exception {
    link("b");
    link("c");
    link("d");
    for (String name : List.of("a", "b", "c", "d")) {
      driver.node(name);
    }
    driver.unlink("c");
    driver.rename("d", "e", 0);
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", OLD, "b", OLD, "e", OLD));
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
  }

  @Test
  void nameThatIsFoundAfterALink_isRemoved() throws Exception {
    link("b");
    driver.link("a", "linked");
    driver.drainAll();
    driver.unlink("b");
    assertThat(driver.tree()).isEqualTo(Map.of("a", OLD, "linked", OLD));
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", OLD, "linked", OLD));
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
  }

  /** Lets the process die at a call at the source; returns whether there were so many. */
  private boolean dieAt(int at) throws Exception {
    int[] calls = {0};
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) {
            if (calls[0]++ == at) {
              throw new FakeCalls.Death();
            }
          }
        });
    try {
      driver.drainAll();
    } catch (FakeCalls.Death e) {
      driver.restart();
      root = driver.calls.openRoot(Driver.SOURCE);
    }
    driver.calls.watch(new FakeCalls.Watcher() {});
    return calls[0] > at;
  }

  /** What follows an append whose way to the source is interrupted by a death. */
  private interface Next {
    void act() throws Exception;
  }

  private void interruptAppend(Next next, String wanted) throws Exception {
    int at = 0;
    boolean isMore = true;
    while (isMore) {
      driver.put("x", "one");
      driver.drainAll();
      driver.append("x", " and more");
      isMore = dieAt(at++);
      next.act();
      driver.drainAll();
      assertThat(driver.mount().drainStatus().conflicts()).as("call %d", at).isZero();
      assertThat(driver.sourceTree()).as("call %d", at).containsEntry("x", "file 644 " + wanted);
      driver.unlink("x");
      driver.drainAll();
    }
    assertThat(at).isGreaterThan(3);
  }

  @Test
  void appendThatADeathInterrupted_isNoConflictWithWhatIsWrittenNext() throws Exception {
    interruptAppend(() -> driver.overwrite("x", 0, "two"), "two and more");
  }

  @Test
  void appendThatADeathInterrupted_isNoConflictWithTheNextOne() throws Exception {
    interruptAppend(() -> driver.append("x", " of it"), "one and more of it");
  }

  @Test
  void appendThatADeathInterrupted_isNoConflictWithAnEmptiedFile() throws Exception {
    interruptAppend(() -> driver.put("x", "new"), "new");
  }

  @Test
  void appendThatADeathInterrupted_isNoConflictWithARename() throws Exception {
    Next moved =
        () -> {
          driver.rename("x", "y", 0);
          driver.drainAll();
          driver.rename("y", "x", 0);
        };
    interruptAppend(moved, "one and more");
  }

  @Test
  void appendThatADeathInterrupted_isNoConflictWithARenameOverIt() throws Exception {
    Next replaced =
        () -> {
          driver.put("z", "other");
          driver.rename("z", "x", 0);
        };
    interruptAppend(replaced, "other");
  }

  @Test
  void appendThatADeathInterrupted_isNoConflictWithARemoval() throws Exception {
    int at = 0;
    boolean isMore = true;
    while (isMore) {
      driver.put("x", "one");
      driver.drainAll();
      driver.append("x", " and more");
      isMore = dieAt(at++);
      driver.unlink("x");
      driver.drainAll();
      assertThat(driver.mount().drainStatus().conflicts()).as("call %d", at).isZero();
      assertThat(driver.sourceTree()).as("call %d", at).doesNotContainKey("x");
    }
  }

  @Test
  void overwritingThatADeathInterrupted_isNoConflictWithWhatIsWrittenNext() throws Exception {
    int at = 0;
    boolean isMore = true;
    while (isMore) {
      String name = "x" + at;
      driver.put(name, "one");
      driver.drainAll();
      driver.calls.link(root, Driver.name(name), root, Driver.name("unknown" + at));
      driver.overwrite(name, 0, "two");
      isMore = dieAt(at++);
      driver.put(name, "three");
      driver.drainAll();
      assertThat(driver.mount().drainStatus().conflicts()).as("call %d", at).isZero();
      assertThat(driver.sourceTree()).as("call %d", at).containsEntry(name, "file 644 three");
    }
  }

  @Test
  void nameThatAnotherProgramReplaced_staysAsItIs() throws Exception {
    link("b");
    driver.node("a");
    driver.node("b");
    driver.put("a", "new");
    driver.calls.unlink(root, Driver.name("b"));
    int other = driver.calls.open(root, Driver.name("b"), OutputCalls.O_CREAT, 0644);
    driver.calls.write(other, Driver.bytes("another's"), 0);
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", NEW, "b", "file 644 another's"));
    assertThat(driver.mount().drainStatus().conflicts()).isOne();
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
  }

  @Test
  void directoryThatTheWriterMayNotChange_getsTheNewVersionWhole() throws Exception {
    watch("create", 1);
    driver.put("a", "new");
    driver.drainAll();
    assertThat(seen).allSatisfy(tree -> assertThat(tree.values()).isSubsetOf(OLD, NEW));
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", NEW));
  }

  @Test
  void directoryThatNoProcessMayChange_getsTheNewVersionInPlace() throws Exception {
    FakeCalls.Node before = source("a");
    watch("create", Integer.MAX_VALUE);
    driver.put("a", "new");
    driver.drainAll();
    assertThat(seen).allSatisfy(tree -> assertThat(tree.get("a")).hasSizeGreaterThanOrEqualTo(12));
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", NEW));
    assertThat(source("a")).isSameAs(before);
  }

  @Test
  void versionWithSizeAndTimeOfTheOneBefore_reachesTheSource() throws Exception {
    Instant time = Instant.ofEpochSecond(1_600_000_000);
    for (String content : List.of("one", "two")) {
      driver.put("a", content);
      driver
          .mount()
          .setAttributes(
              driver.node("a").inode(),
              new NewAttributes(null, null, null, null, null, time, 0, false),
              driver.caller());
      driver.drainAll();
      assertThat(driver.sourceTree()).isEqualTo(Map.of("a", "file 644 " + content));
    }
  }

  @Test
  void releaseThatComesLate_doesNotTellWhatAnotherWriterHasBegun() throws Exception {
    long inode = driver.node("a").inode();
    Opened first = driver.mount().open(inode, OutputCalls.O_WRONLY, driver.caller());
    driver.write(first, 0, "first");
    driver.mount().flush(inode, first.handle(), driver.caller());
    int truncating = OutputCalls.O_WRONLY | OutputCalls.O_TRUNC;
    Opened second = driver.mount().open(inode, truncating, driver.caller());
    driver.mount().release(inode, first.handle());
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", "file 644 first56789"));
    driver.write(second, 0, "second");
    driver.mount().release(inode, second.handle());
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", "file 644 second"));
  }

  // ---- access-control lists and attributes

  /** Denies the owning group what a named user may do: the mode's group bits are the mask. */
  private static final int LISTED_MODE = 0100660;

  private static byte[] list(int mask) {
    ByteBuffer list = ByteBuffer.allocate(44).order(ByteOrder.LITTLE_ENDIAN).putInt(2);
    int[][] entries = {{1, 6, -1}, {2, 6, 1000}, {4, 0, -1}, {0x10, mask, -1}, {0x20, 0, -1}};
    for (int[] entry : entries) {
      list.putShort((short) entry[0]).putShort((short) entry[1]).putInt(entry[2]);
    }
    return list.array();
  }

  private FakeCalls.Node listed() {
    FakeCalls.Node file = source("a");
    file.mode = LISTED_MODE;
    file.extended.put(PosixAcl.ACCESS, list(6));
    return file;
  }

  private Map<String, byte[]> attributes(String name) {
    Map<String, byte[]> found = new TreeMap<>();
    source(name).extended.forEach((key, value) -> found.put(key.toString(), value));
    return found;
  }

  @Test
  void replacedFile_keepsWhatAWriteKeeps() throws Exception {
    FakeCalls.Node before = listed();
    for (String name :
        List.of("user.a", "trusted.b", "security.selinux", "security.capability", "security.ima")) {
      before.extended.put(Driver.name(name), name.getBytes(ISO_8859_1));
    }
    driver.put("a", "new");
    driver.drainAll();
    assertThat(source("a")).isNotSameAs(before);
    assertThat(source("a").mode).isEqualTo(LISTED_MODE);
    assertThat(attributes("a"))
        .containsOnlyKeys("user.a", "trusted.b", "security.selinux", "system.posix_acl_access")
        .containsEntry("system.posix_acl_access", list(6))
        .containsEntry("trusted.b", "trusted.b".getBytes(ISO_8859_1));
  }

  @Test
  void replacedFile_withAnotherMode_hasItInItsList() throws Exception {
    listed();
    driver.chmod("a", 0640);
    driver.put("a", "new");
    driver.drainAll();
    assertThat(attributes("a")).containsEntry("system.posix_acl_access", list(4));
  }

  @Test
  void replacedFile_withoutList_inheritsNone() throws Exception {
    driver.calls.sourceRoot().extended.put(FakeCalls.DEFAULT_LIST, list(6));
    driver.put("a", "new");
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", NEW));
    assertThat(attributes("a")).isEmpty();
  }

  /** The next content is in a file of its own, which nobody may read whom the list denies that. */
  @Test
  void replacedFile_isNeverOpenedByItsModeAlone() throws Exception {
    listed();
    List<String> open = new ArrayList<>();
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void after(String call, FileName name) {
            driver
                .calls
                .sourceRoot()
                .children
                .forEach(
                    (key, node) -> {
                      if ((node.mode & 077) != 0 && !node.extended.containsKey(PosixAcl.ACCESS)) {
                        open.add(key + " after " + call);
                      }
                    });
          }
        });
    driver.put("a", "new");
    driver.drainAll();
    assertThat(open).isEmpty();
    assertThat(source("a").mode).isEqualTo(LISTED_MODE);
  }

  @Test
  void fileWhoseListNoProcessMaySet_getsTheNewVersionInPlace() throws Exception {
    FakeCalls.Node before = listed();
    watch("setxattr", Integer.MAX_VALUE);
    driver.put("a", "new");
    driver.drainAll();
    assertThat(source("a")).isSameAs(before);
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", "file 660 new"));
    assertThat(attributes("a")).containsEntry("system.posix_acl_access", list(6));
    assertThat(driver.temporaries()).isEmpty();
  }

  @Test
  void fileWithAnAttributeThatMayNotBeRead_getsTheNewVersionInPlace() throws Exception {
    FakeCalls.Node before = source("a");
    before.extended.put(Driver.name("user.a"), new byte[] {1});
    driver.calls.hiddenAttributes.add(Driver.name("user.a"));
    driver.put("a", "new");
    driver.drainAll();
    assertThat(source("a")).isSameAs(before);
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", NEW));
    assertThat(attributes("a")).containsOnlyKeys("user.a");
  }

  @Test
  void versionBesideAChangedFile_hasItsList() throws Exception {
    listed();
    driver.put("a", "new");
    int file = driver.calls.open(root, Driver.name("a"), OutputCalls.O_RDWR, 0);
    driver.calls.write(file, Driver.bytes("another's, longer"), 0);
    driver.drainAll();
    String beside = "a.pmfs-conflict-node1-1";
    assertThat(driver.sourceTree()).containsEntry(beside, "file 660 new");
    assertThat(attributes(beside)).containsEntry("system.posix_acl_access", list(6));
  }

  /** The source cannot rename it, so it is copied. */
  @Test
  void copiedFile_inheritsNoList() throws Exception {
    driver.mkdir("d");
    driver.drainAll();
    source("d").extended.put(FakeCalls.DEFAULT_LIST, list(6));
    driver.rename("a", "d/a", 0);
    driver.calls.watch(
        new FakeCalls.Watcher() {
          private boolean isFirst = true;

          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("rename") && isFirst) {
              isFirst = false;
              throw new FsException(Errno.EXDEV, call);
            }
          }
        });
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("d/a", OLD);
    assertThat(Objects.requireNonNull(source("d").children.get(Driver.name("a"))).extended)
        .isEmpty();
  }

  @Test
  void otherName_ofAFileWhoseFirstNameAnotherProgramRemoved_isTheFile() throws Exception {
    link("b");
    link("unknown");
    driver.node("a");
    driver.node("b");
    driver.calls.unlink(root, Driver.name("a"));
    assertThat(driver.read("b")).isEqualTo("0123456789");
    driver.remount();
    assertThat(driver.read("b")).isEqualTo("0123456789");
  }

  @Test
  void changesOfAFile_whoseFirstNameAnotherProgramReplaces_areMade() throws Exception {
    link("b");
    driver.node("a");
    driver.node("b");
    driver.chmod("b", 0600);
    driver.setExtended("b", "user.key", "value");
    driver.link("b", "c");
    driver.append("b", "more");
    driver.calls.unlink(root, Driver.name("a"));
    driver.calls.makeAtSource("a", "theirs");
    driver.drainAll();
    String all = "file 600 0123456789more";
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", "file 644 theirs", "b", all, "c", all));
    assertThat(source("b").extended).containsOnlyKeys(Driver.name("user.key"));
    assertThat(driver.mount().drainStatus().conflicts()).isZero();
  }

  @Test
  void namesOfASymbolicLink_areReadAndRemovedAsTheyAre() throws Exception {
    driver.calls.symlink(Driver.name("target"), root, Driver.name("one"));
    driver.calls.link(root, Driver.name("one"), root, Driver.name("two"));
    driver.calls.link(root, Driver.name("one"), root, Driver.name("three"));
    for (String name : List.of("one", "two", "three")) {
      driver.node(name);
    }
    driver.calls.unlink(root, Driver.name("one"));
    assertThat(driver.mount().readSymbolicLink(driver.node("two").inode()))
        .isEqualTo(Driver.name("target"));
    driver.unlink("three");
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", OLD, "two", "link target"));
  }
}
