package io.pmfs.it;

import io.pmfs.posix.Await;
import java.time.Duration;
import java.util.List;

/** A {@link ReadLoop} in the mount of a container, which goes on until it is closed. */
final class ContainerReader implements AutoCloseable {
  private static final Duration PATIENCE = Duration.ofSeconds(100);
  private static final String OUTPUT = "/tmp/reads";

  private final ContainerNode node;

  /** What the program says. */
  private record Progress(long reads, long longestMillis) {}

  ContainerReader(ContainerNode node) {
    this.node = node;
    node.startProgram(
        OUTPUT, List.of(ReadLoop.class, Dataset.Item.class), ContainerNode.MOUNTPOINT);
  }

  /** Waits until it has read so many files more, each of them right. */
  void awaitMore(int count) {
    long goal = progress().reads() + count;
    Await.until(() -> node + " reads no more", PATIENCE, () -> progress().reads() >= goal);
  }

  /** How long the slowest read took, from open to close. */
  Duration longest() {
    return Duration.ofMillis(progress().longestMillis());
  }

  private Progress progress() {
    String output = node.run("tail", "-n", "20", OUTPUT).expect(0).out();
    String last = output.lines().reduce("0 0", (before, line) -> line);
    if (!last.matches("\\d+ \\d+")) {
      throw new AssertionError("a read failed on " + node + ": " + output);
    }
    String[] numbers = last.split(" ", -1);
    return new Progress(Long.parseLong(numbers[0]), Long.parseLong(numbers[1]));
  }

  @Override
  public void close() {
    node.endProgram(OUTPUT);
  }
}
