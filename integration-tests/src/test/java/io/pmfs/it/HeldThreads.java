package io.pmfs.it;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Threads of another process that go on no more, as in a lock-up, while the rest of it does. The
 * system lets the thread that holds them, and no other, look after them; so this one does until
 * they are killed.
 *
 * <p>They are held where threads of a lock-up are, in a system call that Java code made. A JVM
 * waits with its thread dump for a thread that is held in Java code, or where the JVM yields or
 * maps memory by itself.
 */
final class HeldThreads implements AutoCloseable {
  // linux/ptrace.h, linux/wait.h
  private static final long PTRACE_SEIZE = 0x4206;
  private static final long PTRACE_INTERRUPT = 0x4207;
  private static final long PTRACE_CONT = 7;
  private static final int WNOHANG = 1;
  private static final int WALL = 0x40000000;

  /** read, write, poll, ioctl, pread64, pwrite64, readv, writev and splice of x86-64. */
  private static final Set<String> CALLS =
      Set.of("0", "1", "7", "16", "17", "18", "19", "20", "275");

  /** After that the threads that wait for other ones are held as well. */
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final Set<Integer> threads = ConcurrentHashMap.newKeySet();
  private final CountDownLatch held = new CountDownLatch(1);
  private final CountDownLatch closed = new CountDownLatch(1);
  private final AtomicReference<IOException> failure = new AtomicReference<>();
  private final Thread holder;

  /** Holds the threads of a process whose names begin so. */
  HeldThreads(long pid, String prefix) {
    holder = new Thread(() -> hold(pid, prefix), "holder of " + prefix);
    holder.setDaemon(true);
    holder.start();
    try {
      if (!held.await(30, TimeUnit.SECONDS) || threads.isEmpty()) {
        throw new AssertionError(
            "no threads " + prefix + " of " + pid + " are held", failure.get());
      }
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private void hold(long pid, String prefix) {
    try {
      Set<Integer> running = seize(pid, prefix);
      long patienceEnds = System.nanoTime() + PATIENCE_NANOS;
      while (!running.isEmpty()) {
        boolean inAnyCall = System.nanoTime() - patienceEnds > 0;
        running.removeIf(thread -> holdInSystemCall(pid, thread, inAnyCall));
      }
      held.countDown();
      byte[] status = new byte[4];
      while (!threads.isEmpty() && !closed.await(20, TimeUnit.MILLISECONDS)) {
        // A thread that was killed is gone when it was waited for, and its process after that.
        threads.removeIf(
            thread ->
                Posix.LIBC.waitpid(thread, status, WNOHANG | WALL) == thread
                    && (status[0] & 0xff) != 0x7f);
      }
    } catch (IOException e) {
      failure.set(e);
      held.countDown();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static Set<Integer> seize(long pid, String prefix) throws IOException {
    Set<Integer> seized = new HashSet<>();
    try (DirectoryStream<Path> tasks =
        Files.newDirectoryStream(Path.of("/proc/" + pid + "/task"))) {
      for (Path task : tasks) {
        int thread = Integer.parseInt(task.getFileName().toString());
        if (read(task.resolve("comm")).startsWith(prefix)
            && Posix.LIBC.ptrace(PTRACE_SEIZE, thread, null, null) == 0) {
          seized.add(thread);
        }
      }
    }
    return seized;
  }

  /** Returns whether the thread needs no other try: it is held, or has ended. */
  private boolean holdInSystemCall(long pid, int thread, boolean inAnyCall) {
    if (Posix.LIBC.ptrace(PTRACE_INTERRUPT, thread, null, null) != 0) {
      return true;
    }
    Posix.LIBC.waitpid(thread, new byte[4], WALL);
    // The number of the call, or -1; proc(5).
    String call = read(Path.of("/proc/" + pid + "/task/" + thread + "/syscall")).split(" ", 2)[0];
    if (CALLS.contains(call) || (inAnyCall && !call.equals("-1") && !call.isEmpty())) {
      threads.add(thread);
      return true;
    }
    Posix.LIBC.ptrace(PTRACE_CONT, thread, null, null);
    return false;
  }

  /** The text of a file of a thread, or nothing if the thread has ended. */
  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      return "";
    }
  }

  @Override
  public void close() {
    closed.countDown();
    try {
      holder.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
