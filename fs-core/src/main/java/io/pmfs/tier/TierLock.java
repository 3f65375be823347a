package io.pmfs.tier;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The lock on a tier's directory: two daemons on the same directory would remove each other's
 * copies as leftovers.
 */
public final class TierLock implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(TierLock.class);

  private final FileChannel file;

  /**
   * Locks a directory.
   *
   * @throws TierInUseException if another process, or another part of this one, has it locked
   */
  public TierLock(Path directory) throws IOException {
    this.file = lock(directory);
    stamp();
  }

  private static FileChannel lock(Path directory) throws IOException {
    FileChannel file =
        FileChannel.open(
            directory.resolve(DirectoryTier.LOCK),
            Set.of(CREATE, WRITE, LinkOption.NOFOLLOW_LINKS),
            DirectoryTier.FILE_MODE);
    try {
      if (file.tryLock() != null) {
        return file;
      }
    } catch (OverlappingFileLockException e) {
      // Locked by this process.
    }
    file.close();
    throw new TierInUseException(directory);
  }

  /** Sets the modification time of the lock file, which shows when the tier was last in use. */
  private void stamp() {
    try {
      file.write(ByteBuffer.allocate(1), 0);
    } catch (IOException e) {
      log.debug("{}: {}", DirectoryTier.LOCK, e.getMessage());
    }
  }

  @Override
  public void close() {
    stamp();
    CopyFiles.closeQuietly(file);
  }
}
