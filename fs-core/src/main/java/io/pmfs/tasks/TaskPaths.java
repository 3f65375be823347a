package io.pmfs.tasks;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PathText;
import java.io.UncheckedIOException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The paths of a request in order: a few in memory, or a list of any length in a {@link PathFile}.
 * Thread-safe, each with its own cursor.
 */
public sealed interface TaskPaths extends AutoCloseable permits TaskPaths.InMemory, PathFile {
  /** No paths: those of an ended task. */
  TaskPaths NONE = of(List.of());

  /** PATH_MAX of Linux, without its NUL. */
  int MAX_PATH_BYTES = 4095;

  static TaskPaths of(List<FileName> paths) {
    return new InMemory(paths);
  }

  long count();

  /** A cursor before the first path. */
  Cursor open();

  /** Closes and removes the file, if there is one. Idempotent. */
  @Override
  void close();

  /** Iterates over the paths, used by one thread at a time. */
  interface Cursor {
    /**
     * The next path; null after the last.
     *
     * @throws UncheckedIOException if the list can no longer be read
     */
    @Nullable FileName next();

    /** A new cursor at the same position. */
    Cursor fork();

    /** How many paths were returned. */
    long position();

    /** The line of the last path in the list, from 1; 0 if the path is not from a list. */
    long line();

    /** Skips paths until {@link #position} is the given one. */
    default void skipTo(long position) {
      while (position() < position && next() != null) {
        // Only advance.
      }
    }
  }

  /** A path with its position and line, for threads that share a cursor. */
  record Place(FileName path, long position, long line) {
    /** The reason, prefixed with the line if there is one. */
    String reason(String reason) {
      return line == 0 ? reason : "line " + line + ": " + reason;
    }
  }

  /** The next path of a cursor that several threads share; null after the last. */
  static @Nullable Place next(Cursor cursor) {
    synchronized (cursor) {
      FileName path = cursor.next();
      return path == null ? null : new Place(path, cursor.position() - 1, cursor.line());
    }
  }

  /** Paths in the request itself. */
  record InMemory(List<FileName> paths) implements TaskPaths {
    public InMemory {
      paths = List.copyOf(paths);
    }

    @Override
    public long count() {
      return paths.size();
    }

    @Override
    public Cursor open() {
      return new ListCursor(paths, 0);
    }

    @Override
    public void close() {}
  }

  /** Iterates over paths in memory. */
  final class ListCursor implements Cursor {
    private final List<FileName> paths;
    private int next;

    private ListCursor(List<FileName> paths, int next) {
      this.paths = paths;
      this.next = next;
    }

    @Override
    public @Nullable FileName next() {
      return next == paths.size() ? null : paths.get(next++);
    }

    @Override
    public Cursor fork() {
      return new ListCursor(paths, next);
    }

    @Override
    public long position() {
      return next;
    }

    @Override
    public long line() {
      return 0;
    }
  }

  /**
   * Returns the path if it is valid in a request.
   *
   * @throws IllegalArgumentException with a message for the user
   */
  static FileName checked(FileName path) {
    if (path.size() > MAX_PATH_BYTES) {
      throw new IllegalArgumentException("a path is longer than " + MAX_PATH_BYTES + " bytes");
    }
    if (!isRelative(path.bytes())) {
      throw new IllegalArgumentException(
          "path '" + PathText.encode(path) + "': must be relative to the dataset, without . or ..");
    }
    return path;
  }

  /** Whether a path is empty, or consists of names separated by single slashes. */
  private static boolean isRelative(byte[] path) {
    int start = 0;
    for (int i = 0; i <= path.length; i++) {
      if (i < path.length && path[i] == 0) {
        return false;
      }
      if (i == path.length || path[i] == '/') {
        int size = i - start;
        boolean isDots =
            size > 0 && size <= 2 && path[start] == '.' && (size == 1 || path[start + 1] == '.');
        if (isDots || (size == 0 && path.length > 0)) {
          return false;
        }
        start = i + 1;
      }
    }
    return true;
  }
}
