package io.pmfs.writable.drain;

import io.pmfs.posix.FsException;
import io.pmfs.writable.data.OpenFiles;
import io.pmfs.writable.data.OutputFiles;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Closed files whose content could not be recorded in the journal; retried later. Thread-safe. */
public final class Unclosed {
  private static final Logger log = LoggerFactory.getLogger(Unclosed.class);

  private final State state;
  private final OutputFiles files;
  private final Map<Long, Exception> failures = new ConcurrentHashMap<>();

  Unclosed(State state, OutputFiles files) {
    this.state = state;
    this.files = files;
  }

  /** Records the content of a file that nothing has open. */
  public void close(long number) throws FsException {
    Inode inode = state.find(number);
    if (inode != null) {
      files.announce(number, OpenFiles.owner(inode));
    }
    failures.remove(number);
  }

  /** Adds a closed file whose content could not be recorded. */
  public void closeLater(long number, Exception why) {
    failures.put(number, why);
  }

  /** Retries all of them; returns whether none is left. */
  boolean tryAll() {
    for (long number : failures.keySet()) {
      try {
        close(number);
      } catch (FsException e) {
        log.debug("inode {} is not closed: {}", number, e.getMessage());
        closeLater(number, e);
      }
    }
    return failures.isEmpty();
  }

  int count() {
    return failures.size();
  }

  /** The inode numbers, and why each file could not be closed. */
  Map<Long, Exception> failures() {
    return Map.copyOf(failures);
  }
}
