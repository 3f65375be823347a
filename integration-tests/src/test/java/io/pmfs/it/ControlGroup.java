package io.pmfs.it;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/** A cgroup of version 1; close gives its processes to the one above and removes it. */
final class ControlGroup implements AutoCloseable {
  private final Path group;

  /** Skips the test if the machine has no such controller, or the test may not make groups. */
  ControlGroup(String controller) throws IOException {
    Path above = Path.of("/sys/fs/cgroup", controller);
    assumeTrue(Files.isWritable(above), "needs cgroups of version 1 with " + controller);
    group = Files.createDirectory(above.resolve("pmfs-it-" + ProcessHandle.current().pid()));
  }

  void set(String parameter, String value) throws IOException {
    Files.writeString(group.resolve(parameter), value);
  }

  String get(String parameter) throws IOException {
    return Files.readString(group.resolve(parameter)).strip();
  }

  void add(long pid) throws IOException {
    Files.writeString(processes(), Long.toString(pid));
  }

  List<String> pids() throws IOException {
    return Files.readAllLines(processes());
  }

  /** A process that writes its pid here becomes a member. */
  Path processes() {
    return group.resolve("cgroup.procs");
  }

  /** As a scheduler ends a job or a step; returns when no process is left. */
  void killAll() {
    String kill = "kill -KILL $(cat \"$0\")";
    Await.until(
        "no process in " + group,
        Duration.ofMinutes(1),
        () -> Command.run("sh", "-c", kill, processes().toString()).exit() != 0);
  }

  @Override
  public void close() {
    // What is just ending stays for a moment.
    Await.until("the group is gone", Duration.ofSeconds(30), this::isGone);
  }

  private boolean isGone() {
    try {
      for (String pid : pids()) {
        Files.writeString(group.resolveSibling("cgroup.procs"), pid);
      }
      Files.delete(group);
      return true;
    } catch (IOException e) {
      return false;
    }
  }
}
