package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.DaemonThread;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * What a node saw of the files of a dataset: the version of each, and how often and for how long it
 * saw none.
 */
final class Sight {
  /** How long a file may fail, and each time it is opened again. */
  private static final Duration PATIENCE = Duration.ofSeconds(20);

  private static final Duration READING = Duration.ofMinutes(2);

  private static final Duration PAUSE = Duration.ofMillis(100);

  private final Node node;
  private final Map<Versions.Version, Set<String>> files = new ConcurrentSkipListMap<>();
  private final Queue<String> failed = new ConcurrentLinkedQueue<>();
  private final AtomicInteger reads = new AtomicInteger();
  private final AtomicInteger failures = new AtomicInteger();
  private volatile long longestNanos;
  private volatile String slowest = "";
  private volatile boolean ending;
  private @Nullable Thread reader;

  private Sight(Node node) {
    this.node = node;
  }

  /** Reads all files of a node, in an order of its own. */
  static Sight of(Node node, Versions versions) {
    Sight sight = new Sight(node);
    sight.look(versions);
    return sight;
  }

  /** Begins to read all files of a node, again and again until {@link #end}. */
  static Sight begin(Node node, Versions versions) {
    Sight sight = new Sight(node);
    Thread reader = DaemonThread.of("reader of " + node, () -> sight.lookAgainAndAgain(versions));
    sight.reader = reader;
    reader.start();
    return sight;
  }

  /** Waits until this many more files were read, or one was read wrong. */
  void awaitMore(int count) {
    int goal = reads.get() + count;
    Await.until(
        () -> count + " more reads: " + this,
        READING,
        () -> reads.get() >= goal || files.containsKey(Versions.Version.NEITHER));
  }

  /** Reads what is left of the last round, and no more. */
  void end() {
    ending = true;
    Thread begun = reader;
    if (begun != null) {
      Await.until(() -> "the last round: " + this, READING, () -> !begun.isAlive());
    }
  }

  private void lookAgainAndAgain(Versions versions) {
    try {
      while (!ending) {
        look(versions);
      }
    } catch (RuntimeException | Error e) {
      failed.add(e.toString());
    }
  }

  private void look(Versions versions) {
    Path mountpoint = node.mounted().mountpoint();
    List<String> names = new ArrayList<>(versions.names());
    Collections.shuffle(names, new Random(node.address().hashCode()));
    long deadline = System.nanoTime() + PATIENCE.toNanos();
    for (String name : names) {
      Versions.Version seen = read(versions, mountpoint, name, deadline);
      if (seen != null) {
        files.computeIfAbsent(seen, none -> new ConcurrentSkipListSet<>()).add(name);
      }
      reads.incrementAndGet();
      // Else the kernel answers from memory the next time.
      Posix.forgetData(mountpoint + "/" + name);
    }
  }

  private Versions.@Nullable Version read(
      Versions versions, Path mountpoint, String name, long deadline) {
    while (true) {
      long began = System.nanoTime();
      try {
        return versions.read(mountpoint, name);
      } catch (IOException e) {
        failures.incrementAndGet();
        if (System.nanoTime() > deadline) {
          failed.add(name + ": " + e.getMessage());
          return null;
        }
      } finally {
        long took = System.nanoTime() - began;
        if (took > longestNanos) {
          longestNanos = took;
          slowest = name;
        }
      }
      pause();
    }
  }

  private static void pause() {
    try {
      Thread.sleep(PAUSE.toMillis());
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  Node node() {
    return node;
  }

  Duration longest() {
    return Duration.ofNanos(longestNanos);
  }

  /** That what was read was of these versions. */
  void assertOnly(Set<Versions.Version> allowed) {
    assertThat(files.keySet()).as(toString()).isSubsetOf(allowed);
  }

  /** That each file was read, sooner or later. */
  void assertNoneFailed() {
    assertThat(failed).as(toString()).isEmpty();
  }

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder(node.address());
    files.forEach(
        (version, names) -> {
          text.append(' ').append(version).append(' ').append(names.size());
          if (version != Versions.Version.NEW) {
            text.append(' ').append(names);
          }
        });
    return text.append(
            String.format(
                "; %d reads, %d failures; for ever %s; longest %d ms (%s)",
                reads.get(), failures.get(), failed, longest().toMillis(), slowest))
        .toString();
  }
}
