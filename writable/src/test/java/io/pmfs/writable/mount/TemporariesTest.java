package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.TemporaryNames;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Copies that are made ahead of their turn: none of them stays at the source. */
class TemporariesTest {
  /** The first change, which holds back the others but not their copies. */
  private static final String HELD = "held";

  private static final long DEADLINE_MILLIS = 30_000;

  @TempDir Path directory;

  private Driver driver;
  private volatile boolean isHeld;

  @BeforeEach
  void open() throws Exception {
    driver = new Driver(directory, 2, InstantSource.system());
    driver.mkdir("d");
    driver.put("d/x", "x");
    driver.mkdir("e");
    assertThat(driver.mount().drain(DEADLINE_MILLIS)).isTrue();
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (isHeld && name.toString().equals(HELD)) {
              throw new FsException(Errno.EINTR, call);
            }
          }
        });
    isHeld = true;
    driver.mkdir(HELD);
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private int temporaries() {
    synchronized (driver.calls) {
      return driver.temporaries().size();
    }
  }

  /** Lets the changes go on when a content was copied. */
  private void drain() throws Exception {
    Await.until("there are temporaries", () -> temporaries() > 0);
    arrive();
  }

  private void arrive() throws Exception {
    isHeld = false;
    Await.until("all arrived", () -> driver.mount().drainStatus().waitingChanges() == 0);
    assertThat(driver.mount().drainStatus().failures()).isEmpty();
    assertThat(temporaries()).isZero();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
  }

  @Test
  void copyAhead_ofARewrittenFile_isUsed() throws Exception {
    driver.link("d/x", "e/y");
    driver.put("d/x", "new");
    drain();
  }

  /** The copy was made for a file that exists, and then its first content is left out. */
  @Test
  void copyAhead_ofTheSecondContentOfANewFile_hasItsMode() throws Exception {
    driver.put("a", "one");
    driver.put("a", "another");
    drain();
  }

  /** The same copy lacks what only the first content has. */
  @Test
  void copyAhead_ofTheSecondContentOfANewFile_hasItsExtendedAttributes() throws Exception {
    Opened file = driver.create("a");
    driver.setExtended("a", "user.a", "value");
    driver.write(file, 0, "one");
    driver.close(file);
    driver.put("a", "another");
    drain();
    assertThat(driver.sourceDetails()).isEqualTo(driver.details());
    assertThat(driver.details().get("a")).contains("user.a=value");
  }

  /** A directory may be another file system than the source's root, or have another quota. */
  @Test
  void copyAhead_ofTheSecondContentOfANewFile_isInItsDirectory() throws Exception {
    driver.put("d/a", "one");
    driver.mkdir("m");
    driver.put("d/a", "another");
    Await.until("the second is copied", () -> temporaries() > 0);
    synchronized (driver.calls) {
      assertThat(driver.calls.sourceRoot().children.keySet()).noneMatch(TemporaryNames::contains);
    }
    arrive();
  }

  @Test
  void copyAhead_ofAVersionThatIsAppended_goes() throws Exception {
    driver.put("a", "one");
    driver.mkdir("m");
    driver.append("a", "two");
    drain();
  }

  /** What proves that the appended bytes are ours stays when the copy is removed later. */
  @Test
  void copyAhead_ofAVersionWhoseAppendFails_leavesItsProof() throws Exception {
    driver.put("a", "one");
    driver.mkdir("m");
    driver.append("a", "two");
    Await.until("the second is copied", () -> temporaries() > 0);
    AtomicBoolean isStubborn = new AtomicBoolean(true);
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            boolean isRemoval = call.equals("unlink") && TemporaryNames.contains(name);
            if (isRemoval && isStubborn.getAndSet(false)) {
              throw new FsException(Errno.EBUSY, call);
            }
            if (call.equals("sync") && hasAppended() && temporaries() > 0) {
              throw new FsException(Errno.EIO, call);
            }
          }
        });
    arrive();
  }

  /** What proves that a file is ours stays although an earlier copy of it did not fit. */
  @Test
  void copyAhead_thatDidNotFit_leavesTheProofOfTheNextOne() throws Exception {
    AtomicBoolean isFull = new AtomicBoolean(true);
    AtomicBoolean answers = new AtomicBoolean();
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (isHeld && name.toString().equals(HELD)) {
              throw new FsException(Errno.EINTR, call);
            }
            if (call.equals("write") && isFull.getAndSet(false)) {
              throw new FsException(Errno.ENOSPC, call);
            }
          }

          @Override
          public void after(String call, FileName name) throws FsException {
            boolean isLast = call.equals("rename") && name.toString().equals("a");
            if (isLast && !answers.getAndSet(true)) {
              throw new FsException(Errno.ETIMEDOUT, call);
            }
          }
        });
    driver.put("a", "one");
    Await.until("the first copy did not fit", () -> !isFull.get() && temporaries() == 0);
    driver.mkdir("m");
    driver.put("a", "another");
    arrive();
    assertThat(answers.get()).isTrue();
  }

  private boolean hasAppended() {
    return "file 644 onetwo".equals(driver.sourceTree().get("a"));
  }

  @Test
  void copyAhead_inADirectoryThatIsRemoved_goes() throws Exception {
    driver.rename("d/x", "x", 0);
    driver.rmdir("d");
    driver.put("x", "new");
    drain();
  }

  @Test
  void copyAhead_inADirectoryThatIsReplaced_goes() throws Exception {
    driver.rename("d/x", "x", 0);
    driver.rename("e", "d", 0);
    driver.put("x", "new");
    drain();
  }
}
