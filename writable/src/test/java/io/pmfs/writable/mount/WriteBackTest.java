package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.FsException;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The disk begins with a large file before it is synced, and not with small ones. */
@Timeout(60)
final class WriteBackTest {
  private static final int MIB = 1 << 20;

  @TempDir Path directory;
  private Driver driver;

  @BeforeEach
  void open() throws FsException {
    driver = new Driver(directory);
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private Opened written(String path, int mebibytes) throws FsException {
    Opened file = driver.create(path);
    for (int i = 0; i < mebibytes; i++) {
      driver.write(file, (long) i * MIB, "x".repeat(MIB));
    }
    return file;
  }

  @Test
  void largeFile_isBegunWhileItIsWritten_andASmallOneIsNot() throws Exception {
    Opened small = written("small", 7);
    Opened large = written("large", 8);
    assertThat(driver.calls.awaitWriteBack()).isEqualTo(8 * MIB);
    driver.close(small);
    driver.close(large);
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
  }

  @Test
  void busyDisk_delaysNoWriter() throws Exception {
    driver.calls.diskIsFree = new CountDownLatch(1);
    try {
      Opened file = written("large", 8);
      driver.calls.awaitWriteBack();
      driver.close(file);
      driver.close(written("other", 20));
      driver.drainAll();
      assertThat(driver.sourceTree()).isEqualTo(driver.tree());
    } finally {
      driver.calls.diskIsFree.countDown();
    }
  }
}
