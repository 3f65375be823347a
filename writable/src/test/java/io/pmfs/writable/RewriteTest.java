package io.pmfs.writable;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
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
}
