package io.pmfs.it;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Throws an Error in a thread of the process that it is in, when a test in another process wants
 * so: a file names the thread, in how many calls from then, and what. Another file says what was
 * thrown, and where.
 */
public final class ErrorSwitch {
  private static final String WANTED = "wanted";
  private static final String THROWN = "thrown";

  /** Fills the heap; Java then throws the error itself. */
  static final String FILLED_HEAP = "filled-heap";

  private static volatile @Nullable Armed armed;

  /** What is to be thrown, and where to say so. */
  record Armed(String thread, AtomicInteger calls, String what, Path directory) {}

  private ErrorSwitch() {}

  /** Looks for wishes from now on. */
  static void watch(Path where) {
    Thread thread = new Thread(() -> look(where), "error-switch");
    thread.setDaemon(true);
    thread.start();
  }

  private static void look(Path directory) {
    Path wanted = directory.resolve(WANTED);
    while (true) {
      try {
        String[] wish = Files.readString(wanted).split(" ", 3);
        Files.delete(wanted);
        armed =
            new Armed(wish[0], new AtomicInteger(Integer.parseInt(wish[1])), wish[2], directory);
      } catch (NoSuchFileException e) {
        // Nothing is wanted.
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }
      try {
        Thread.sleep(10);
      } catch (InterruptedException e) {
        return;
      }
    }
  }

  /** Called by every method of the process, first. */
  public static void pass() {
    Armed now = armed;
    if (now != null
        && Thread.currentThread().getName().startsWith(now.thread())
        && now.calls().getAndDecrement() == 0) {
      armed = null;
      Error error = error(now.what());
      say(error, now.directory());
      if (now.what().equals(FILLED_HEAP)) {
        fillHeap();
      }
      throw error;
    }
  }

  /** Java throws the Error itself then. */
  private static void fillHeap() {
    List<byte[]> kept = new ArrayList<>();
    while (kept.size() < Integer.MAX_VALUE) {
      kept.add(new byte[1 << 20]);
    }
  }

  private static Error error(String what) {
    return switch (what) {
      case "thread" ->
          new OutOfMemoryError(
              "unable to create native thread: possibly out of memory or process/resource limits"
                  + " reached");
      case "heap", FILLED_HEAP -> new OutOfMemoryError("Java heap space");
      case "direct" -> new OutOfMemoryError("Cannot reserve 1048576 bytes of direct buffer memory");
      case "stack" -> new StackOverflowError();
      case "class" -> new NoClassDefFoundError("io/pmfs/Nothing");
      default -> throw new IllegalArgumentException(what);
    };
  }

  private static void say(Error error, Path directory) {
    StackTraceElement[] trace = error.getStackTrace();
    StringBuilder text = new StringBuilder(Thread.currentThread().getName()).append(": ");
    text.append(error).append('\n');
    for (int i = 2; i < trace.length; i++) {
      text.append("  ").append(trace[i]).append('\n');
    }
    try {
      Path file = directory.resolve("saying");
      Files.writeString(file, text);
      Files.move(file, directory.resolve(THROWN), StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  // In the test's process.

  /** For a thread that comes to its calls by itself. */
  static void pause() {
    try {
      Thread.sleep(20);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * Has an Error thrown in a thread of a process, while something goes on there.
   *
   * @param thread how its name begins
   * @param calls how many methods it calls first
   * @return where it was thrown; empty if the thread did not come so far
   */
  static String throwIn(Path process, String thread, int calls, String what, Runnable meanwhile)
      throws IOException {
    Path thrown = process.resolve(THROWN);
    Files.deleteIfExists(thrown);
    Path wish = process.resolve("wish");
    Files.writeString(wish, thread + " " + calls + " " + what);
    Files.move(wish, process.resolve(WANTED), StandardCopyOption.ATOMIC_MOVE);
    long end = System.nanoTime() + Duration.ofSeconds(15).toNanos();
    while (!Files.exists(thrown)) {
      if (System.nanoTime() - end > 0) {
        return "";
      }
      meanwhile.run();
    }
    return Files.readString(thrown);
  }
}
