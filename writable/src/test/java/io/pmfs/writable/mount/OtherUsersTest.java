package io.pmfs.writable.mount;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiPredicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Other users change names of the source while root brings changes there: nothing is done to their
 * files that their rights forbid, and nothing of them is shown.
 */
@Timeout(60)
final class OtherUsersTest {
  private static final int USER = 1000;
  private static final int OTHER = 2000;
  private static final String SECRET = "secret";

  @TempDir Path directory;
  private Driver driver;

  @BeforeEach
  void start() throws FsException {
    driver = new Driver(directory, 0, InstantSource.system());
    driver.user.set(USER);
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private Map<FileName, FakeCalls.Node> names() {
    return driver.calls.sourceRoot().children;
  }

  private FakeCalls.Node source(String name) {
    return Objects.requireNonNull(names().get(Driver.name(name)));
  }

  /** The other user's file, which only that user may change. */
  private FakeCalls.Node theirs(String name) {
    driver.calls.makeAtSource(name, SECRET);
    FakeCalls.Node node = source(name);
    node.mode = 0100600;
    return close(node);
  }

  private FakeCalls.Node theirDirectory(String name) throws FsException {
    int root = driver.calls.openRoot(Driver.SOURCE);
    driver.calls.mkdir(root, Driver.name(name), 0700);
    driver.calls.close(root);
    return close(source(name));
  }

  private static FakeCalls.Node close(FakeCalls.Node node) {
    node.uid = OTHER;
    node.gid = OTHER;
    node.isClosed = true;
    return node;
  }

  /** The user gives one name to the other's file, at the first call that fits. */
  private void swapAt(String name, FakeCalls.Node theirs, BiPredicate<String, FileName> when) {
    driver.calls.watch(
        new FakeCalls.Watcher() {
          private boolean isDone;

          @Override
          public void before(String call, FileName at) {
            swap(when.test("before " + call, at));
          }

          @Override
          public void after(String call, FileName at) {
            swap(when.test("after " + call, at));
          }

          @Override
          public void looked(FileName at) {
            swap(when.test("looked", at));
          }

          private void swap(boolean isNow) {
            if (isNow && !isDone) {
              isDone = true;
              names().put(Driver.name(name), theirs);
            }
          }
        });
  }

  private void assertUntouched(FakeCalls.Node theirs) {
    assertThat(theirs.uid).isEqualTo(OTHER);
    assertThat(theirs.mode & 07777).isEqualTo(0600);
    assertThat(new String(theirs.content, UTF_8)).isEqualTo(SECRET);
    assertThat(theirs.extended).isEmpty();
  }

  private static BiPredicate<String, FileName> looked(String name) {
    return (call, at) -> call.equals("looked") && at.equals(Driver.name(name));
  }

  @Test
  void directoryOfAnotherUser_madeWhileTheChangeWaits_keepsOwnerAndMode() throws Exception {
    driver.mkdir("d");
    FakeCalls.Node theirs = theirDirectory("d");
    driver.put("d/f", "mine");
    driver.chmod("d", 0777);
    driver.drainAll();
    assertThat(theirs.uid).isEqualTo(OTHER);
    assertThat(theirs.mode & 07777).isEqualTo(0700);
    assertThat(theirs.children).isEmpty();
    assertThat(driver.node("d").attributes().uid()).isEqualTo(OTHER);
    assertThat(driver.node("d").attributes().mode() & 07777).isEqualTo(0700);
  }

  @Test
  void directoryOfAnotherUser_inThePlaceOfOurs_isNeitherShownNorWritten() throws Exception {
    driver.mkdir("d");
    driver.drainAll();
    driver.put("d/f", "mine");
    long ours = driver.node("d").inode();
    FakeCalls.Node theirs = theirDirectory("e");
    names().remove(Driver.name("e"));
    FakeCalls.Node hidden = theirs("hidden");
    names().remove(Driver.name("hidden"));
    theirs.children.put(Driver.name("hidden"), hidden);
    names().put(Driver.name("d"), theirs);
    assertThat(driver.mount().lookup(ours, Driver.name("hidden"))).isNull();
    driver.drainAll();
    assertThat(driver.node("d").attributes().uid()).isEqualTo(OTHER);
    assertThat(theirs.children).containsOnlyKeys(Driver.name("hidden"));
    assertThat(theirs.mode & 07777).isEqualTo(0700);
  }

  /** The source refuses it to the user; before root makes it, the other user has. */
  @Test
  void directoryOfAnotherUser_thatRootFinds_staysTheirs() throws Exception {
    driver.mkdir("closed");
    driver.drainAll();
    FakeCalls.Node closed = close(source("closed"));
    driver.mkdir("closed/d");
    FakeCalls.Node theirs = close(new FakeCalls.Node(1, 0040700, Instant.now()));
    theirs.isSource = true;
    int[] attempts = {0};
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) {
            if (call.equals("mkdir") && name.equals(Driver.name("d")) && ++attempts[0] == 2) {
              closed.children.put(name, theirs);
            }
          }
        });
    driver.drainAll();
    assertThat(attempts[0]).isEqualTo(2);
    assertThat(theirs.uid).isEqualTo(OTHER);
    assertThat(theirs.mode & 07777).isEqualTo(0700);
  }

  @Test
  void mode_whileTheNameIsGivenToAnother_isNotSetThere() throws Exception {
    driver.put("f", "mine");
    driver.drainAll();
    FakeCalls.Node theirs = theirs("theirs");
    for (Change change :
        new Change[] {
          () -> driver.chmod("f", 0777),
          () -> driver.chown("f", USER, 7),
          () -> driver.setExtended("f", "user.key", "value")
        }) {
      FakeCalls.Node own = source("f");
      change.make();
      swapAt("f", theirs, looked("f"));
      driver.drainAll();
      assertUntouched(theirs);
      names().put(Driver.name("f"), own);
    }
  }

  private interface Change {
    void make() throws FsException;
  }

  @Test
  void bytes_whileTheNameIsGivenToAnother_areNotWrittenThere() throws Exception {
    driver.put("f", "mine");
    driver.drainAll();
    FakeCalls.Node theirs = theirs("theirs");
    driver.overwrite("f", 4, " and more");
    swapAt("f", theirs, looked("f"));
    driver.drainAll();
    assertUntouched(theirs);
  }

  @Test
  void newFile_whoseNameIsGivenToAnotherAtOnce_isNotTakenForIt() throws Exception {
    driver.put("f", "public");
    long inode = driver.node("f").inode();
    FakeCalls.Node theirs = theirs("theirs");
    swapAt("f", theirs, (call, at) -> call.equals("after rename") && at.equals(Driver.name("f")));
    driver.drainAll();
    driver
        .mount()
        .setAttributes(
            inode,
            new WritableFileSystem.NewAttributes(0666, null, null, null, null, null, 0, false),
            driver.caller());
    driver.drainAll();
    assertUntouched(theirs);
    assertThat(driver.read(inode)).isEqualTo("public");
    assertThat(driver.sourceTree()).containsEntry("f.pmfs-conflict-node1-1", "file 666 public");
  }

  @Test
  void openFile_whoseNameIsGivenToAnother_isNotReadThere() throws Exception {
    driver.calls.makeAtSource("f", "public");
    source("f").uid = USER;
    long inode = driver.node("f").inode();
    names().put(Driver.name("f"), theirs("theirs"));
    assertThatThrownBy(() -> driver.read(inode)).hasMessageContaining("ESTALE");
  }

  // ---- the hidden directory for data that fit into no tier

  private void failTier() {
    driver.calls.setRefusing(driver.places, Errno.EIO);
  }

  /** The user moves the hidden directory away and puts another one there, with all its fans. */
  private FakeCalls.Node exchangeData(FakeCalls.Node other) {
    FileName hidden = Driver.name(driver.temporaries().get(0));
    names().put(Driver.name("x"), Objects.requireNonNull(names().put(hidden, other)));
    for (int fan = 0; fan < 64; fan++) {
      FakeCalls.Node made = directory(other.uid, other.mode);
      other.children.put(Driver.name("%02x".formatted(fan)), made);
    }
    return other;
  }

  private static FakeCalls.Node directory(int uid, int mode) {
    FakeCalls.Node made = new FakeCalls.Node(1, mode, Instant.now());
    made.isSource = true;
    made.uid = uid;
    return made;
  }

  private static FakeCalls.Node usersDirectory() {
    return directory(USER, 0040700);
  }

  /** The user gives the names of all data files to the other's file. */
  private static void exchangeFiles(FakeCalls.Node from, FakeCalls.Node to, FakeCalls.Node theirs) {
    from.children.forEach(
        (fan, files) -> {
          FakeCalls.Node target = Objects.requireNonNull(to.children.get(fan));
          files.children.keySet().forEach(name -> target.children.put(name, theirs));
        });
  }

  private void restoreData() {
    FileName hidden = Driver.name(driver.temporaries().get(0));
    names().put(hidden, Objects.requireNonNull(names().remove(Driver.name("x"))));
  }

  @Test
  void dataOfANewFile_inADirectoryOfTheUser_areNotExchanged() throws Exception {
    FakeCalls.Node theirs = theirs("theirs");
    failTier();
    driver.put("a", "mine");
    for (FakeCalls.Node other :
        new FakeCalls.Node[] {usersDirectory(), directory(0, 0040777)}) { // Root's, open to all.
      exchangeData(other);
      Opened file = driver.create("f" + other.uid);
      assertRefused(() -> driver.write(file, 0, "mine"));
      exchangeFiles(other, other, theirs);
      assertRefused(() -> driver.write(file, 0, "over theirs"));
      assertThat(driver.read(file.node().inode())).isEmpty();
      assertUntouched(theirs);
      restoreData();
      driver.write(file, 0, "mine");
      driver.close(file);
    }
    driver.drainAll();
    assertUntouched(theirs);
    assertThat(driver.sourceTree())
        .containsEntry("a", "file 644 mine")
        .containsEntry("f0", "file 644 mine")
        .containsEntry("f" + USER, "file 644 mine");
    assertThat(driver.temporaries()).isEmpty();
  }

  private static void assertRefused(Change change) {
    assertThatThrownBy(change::make).hasMessageContaining("move the mount's own back");
  }

  @Test
  void dataOfAnEarlierDaemon_inADirectoryOfTheUser_areNotExchanged() throws Exception {
    FakeCalls.Node theirs = theirs("theirs");
    failTier();
    driver.put("a", "mine");
    driver.end();
    FakeCalls.Node users = exchangeData(usersDirectory());
    exchangeFiles(Objects.requireNonNull(names().get(Driver.name("x"))), users, theirs);
    driver.begin();
    assertRefused(() -> driver.read("a"));
    assertRefused(() -> driver.overwrite("a", 0, "M"));
    driver.mount().attempt();
    driver.mount().tidy();
    assertThat(driver.mount().drainStatus().waitingChanges()).isPositive();
    assertThat(driver.sourceTree().toString()).doesNotContain("a=");
    assertUntouched(theirs);
    restoreData();
    assertThat(driver.read("a")).isEqualTo("mine");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 mine");
    assertThat(driver.temporaries()).isEmpty();
  }

  /** A source may take root for nobody, and the next daemon may be another user's. */
  @Test
  void dataOfAnEarlierDaemon_ofWhateverUser_areUsed() throws Exception {
    failTier();
    for (int user : new int[] {65534, USER, 0}) {
      driver.calls.setDaemon(user);
      driver.restart();
      driver.put("f" + user, "mine");
      assertThat(driver.tree()).allSatisfy((name, what) -> assertThat(what).endsWith("mine"));
    }
    driver.drainAll();
    assertThat(driver.sourceTree()).hasSize(3);
    assertThat(driver.temporaries()).isEmpty();
  }

  @Test
  void data_atASourceWithoutModes_areUsed() throws Exception {
    driver.calls.forgetModes();
    failTier();
    driver.put("a", "mine");
    driver.restart();
    assertThat(driver.read("a")).isEqualTo("mine");
    driver.drainAll();
    assertThat(source("a").content).hasSize(4);
    assertThat(driver.temporaries()).isEmpty();
  }
}
