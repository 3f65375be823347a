package io.pmfs.daemon.report;

import java.lang.management.LockInfo;
import java.lang.management.ManagementFactory;
import java.lang.management.MonitorInfo;
import java.lang.management.RuntimeMXBean;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;

/** A text dump of all threads of this process: name, state, stack, and the locks they wait for. */
public final class ThreadDump {
  private static final int MOST_FRAMES = 100;
  private static final int MOST_CHARACTERS = 4 << 20;

  private ThreadDump() {}

  /** Pauses all threads for some milliseconds. */
  public static String now() {
    RuntimeMXBean runtime = ManagementFactory.getRuntimeMXBean();
    ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    StringBuilder text = new StringBuilder();
    text.append(runtime.getVmName())
        .append(' ')
        .append(runtime.getVmVersion())
        .append(", up for ")
        .append(runtime.getUptime() / 1000)
        .append(" s, threads ")
        .append(threads.getThreadCount())
        .append(", at most ")
        .append(threads.getPeakThreadCount())
        .append("\n\n");
    for (ThreadInfo thread : threads.dumpAllThreads(true, true, MOST_FRAMES)) {
      if (text.length() > MOST_CHARACTERS) {
        return text.append("and more\n").toString();
      }
      append(text, thread);
    }
    long[] deadlocked = threads.findDeadlockedThreads();
    return text.append("deadlocked: ")
        .append(deadlocked == null ? "none" : Arrays.toString(deadlocked))
        .append('\n')
        .toString();
  }

  /** A frame without its module. */
  private static String text(StackTraceElement frame) {
    String place =
        frame.isNativeMethod()
            ? "native"
            : frame.getFileName() == null
                ? "unknown"
                : frame.getFileName() + ":" + frame.getLineNumber();
    return frame.getClassName() + "." + frame.getMethodName() + "(" + place + ")";
  }

  private static void append(StringBuilder text, ThreadInfo thread) {
    text.append('"')
        .append(thread.getThreadName())
        .append("\" #")
        .append(thread.getThreadId())
        .append(' ')
        .append(thread.getThreadState());
    LockInfo awaited = thread.getLockInfo();
    if (awaited != null) {
      text.append(" on ").append(awaited);
      if (thread.getLockOwnerName() != null) {
        text.append(" of \"").append(thread.getLockOwnerName()).append('"');
      }
    }
    text.append('\n');
    StackTraceElement[] frames = thread.getStackTrace();
    for (int i = 0; i < frames.length; i++) {
      text.append("    at ").append(text(frames[i])).append('\n');
      for (MonitorInfo monitor : thread.getLockedMonitors()) {
        if (monitor.getLockedStackDepth() == i) {
          text.append("    - holds ").append(monitor).append('\n');
        }
      }
    }
    for (LockInfo held : thread.getLockedSynchronizers()) {
      text.append("    - holds ").append(held).append('\n');
    }
    text.append('\n');
  }
}
