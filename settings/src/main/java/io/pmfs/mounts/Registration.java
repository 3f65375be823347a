package io.pmfs.mounts;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.Gson;
import io.pmfs.machine.Reason;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * This process's claim on a mount point, released by {@link #close} or the death of the process.
 * Closing is idempotent.
 */
public final class Registration implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Registration.class);

  private final FileChannel lock;
  private final Path entryFile;
  private final Path socket;
  private final @Nullable Path spent;

  /**
   * A claim whose lock is held.
   *
   * @param spent the lock file, if {@link #close} must remove it; null if another daemon may lock
   *     it later
   */
  Registration(FileChannel lock, Path entryFile, Path socket, @Nullable Path spent) {
    this.lock = lock;
    this.entryFile = entryFile;
    this.socket = socket;
    this.spent = spent;
  }

  public Path socket() {
    return socket;
  }

  /** Removes the files of a dead daemon. */
  void clear() throws IOException {
    Files.deleteIfExists(entryFile);
    Files.deleteIfExists(socket);
  }

  /** Publishes the daemon of the mount point and its control socket for other commands. */
  public void publish(DaemonRecord entry) throws IOException {
    Path temporary = entryFile.resolveSibling(entryFile.getFileName() + ".new");
    Files.writeString(temporary, new Gson().toJson(entry), UTF_8);
    Files.move(temporary, entryFile, StandardCopyOption.ATOMIC_MOVE);
  }

  /**
   * Records, in the lock file, that the source has all changes of this process's mount, and that
   * all was purged if that was requested. Call at the end; the next claim of the mount point
   * removes it.
   */
  public void markSaved() throws IOException {
    lock.write(UTF_8.encode(Long.toString(ProcessHandle.current().pid())), 0);
  }

  @Override
  public void close() {
    if (!lock.isOpen()) {
      return; // the files may belong to a successor now
    }
    try (lock) {
      clear();
      if (spent != null) {
        Files.deleteIfExists(spent);
      }
    } catch (IOException e) {
      log.warn("{}: cannot be removed: {}", entryFile, Reason.of(e));
    }
  }
}
