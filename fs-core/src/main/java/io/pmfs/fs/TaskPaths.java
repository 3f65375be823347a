package io.pmfs.fs;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PathText;
import java.io.UncheckedIOException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The paths of a request in their order: a few in memory, or a list of any length in a {@link
 * PathFile}. Safe for use by many threads, each with a cursor of its own.
 */
public sealed interface TaskPaths extends AutoCloseable permits TaskPaths.InMemory, PathFile {
  /** What a task keeps of its paths when it has ended. */
  TaskPaths NONE = of(List.of());

  /** PATH_MAX of Linux, without its NUL. */
  int MAX_PATH_BYTES = 4095;

  static TaskPaths of(List<FileName> paths) {
    return new InMemory(paths);
  }

  long count();

  /** Passes over the paths from the first. */
  Cursor open();

  /** Gives up the file, if there is one. Idempotent. */
  @Override
  void close();

  /** A pass over the paths, by one thread at a time. */
  interface Cursor {
    /**
     * The next path; null after the last.
     *
     * @throws UncheckedIOException if the list cannot be read any more
     */
    @Nullable FileName next();

    /** Another one that is where this is. */
    Cursor fork();

    /** How many paths were returned. */
    long position();

    /** The line of the list that the last path stood in, from 1; 0 if it is not from a list. */
    long line();

    /** Passes over paths until so many were passed over in all. */
    default void skipTo(long position) {
      while (position() < position && next() != null) {
        // The next one, then.
      }
    }
  }

  /** A path with its place, for threads that share a cursor. */
  record Place(FileName path, long position, long line) {
    /** A reason that names the line. */
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

  /** Paths that came with the request itself. */
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

  /** A pass over paths in memory. */
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
   * The path itself if a request may have it.
   *
   * @throws IllegalArgumentException with a message fit for the user
   */
  static FileName checked(FileName path) {
    if (path.size() > MAX_PATH_BYTES) {
      throw new IllegalArgumentException("a path is longer than " + MAX_PATH_BYTES + " bytes");
    }
    if (!isRelative(path.bytes())) {
      throw new IllegalArgumentException(
          "path '"
              + PathText.encode(path)
              + "': give it relative to the dataset, without . and ..");
    }
    return path;
  }

  /** Whether a path is empty, or names with single slashes between them. */
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
