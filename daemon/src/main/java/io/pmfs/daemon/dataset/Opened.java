package io.pmfs.daemon.dataset;

import java.util.ArrayDeque;
import java.util.Deque;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The open parts of a mount. Closes them in reverse order, continuing if one fails. */
public final class Opened implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Opened.class);

  private final Deque<AutoCloseable> parts = new ArrayDeque<>();

  /** Takes over a part, and returns it. */
  public <T extends AutoCloseable> T add(T part) {
    parts.push(part);
    return part;
  }

  /** Returns ownership of a part to the caller. */
  public void release(AutoCloseable part) {
    parts.remove(part);
  }

  @Override
  public void close() {
    while (!parts.isEmpty()) {
      try {
        parts.pop().close();
      } catch (Exception e) {
        log.warn("closing", e);
      }
    }
  }
}
