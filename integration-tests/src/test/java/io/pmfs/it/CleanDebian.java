package io.pmfs.it;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.github.dockerjava.api.command.CreateContainerCmd;
import io.pmfs.posix.Await;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.utility.DockerImageName;
import org.testcontainers.utility.MountableFile;

/**
 * A container of a Debian on which nothing but what the Debian package of pmfs depends on was
 * installed, with FUSE. Close removes it.
 */
final class CleanDebian implements AutoCloseable {
  static final String IMAGE = "pmfs-test:debian";
  private static final Duration IMAGE_DEADLINE = Duration.ofMinutes(10);

  /** On a busy machine, an installation takes the 180 s that it may. */
  private static final int DEADLINE_SECONDS = 600;

  /** Emulated, a JVM takes ten times as long. */
  private static final int ARM64_DEADLINE_SECONDS = 1800;

  private static final Duration SOON = Duration.ofSeconds(60);

  /** The first process takes over those that lose their parent, and ends when it is told to. */
  private static final String FIRST_PROCESS =
      "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done";

  private static final Set<String> MADE = new HashSet<>();

  private final GenericContainer<?> container;
  private final int deadlineSeconds;

  private CleanDebian(String tag, int deadlineSeconds) {
    Containers.require();
    this.deadlineSeconds = deadlineSeconds;
    container =
        new GenericContainer<>(DockerImageName.parse(tag))
            .withImagePullPolicy(image -> false)
            .withNetworkMode("none")
            .withCreateContainerCmdModifier(
                (CreateContainerCmd command) -> {
                  Containers.permitFuse(command);
                  command.withName(TestRun.newName()).withHostName("clean");
                })
            .withCommand("bash", "-c", FIRST_PROCESS);
    container.start();
  }

  /** With more packages of Debian, separated by commas. */
  static CleanDebian with(String packages) {
    return new CleanDebian(makeImage("", packages), DEADLINE_SECONDS);
  }

  /**
   * For AArch64, on a machine that starts its programs by an emulator, with the programs that unit
   * tests of native calls need.
   */
  static CleanDebian arm64() {
    return new CleanDebian(makeImage("arm64", "zstd,gcc,libc6-dev"), ARM64_DEADLINE_SECONDS);
  }

  /** The image without more packages. */
  static void makeImage() {
    makeImage("", "");
  }

  private static synchronized String makeImage(String architecture, String packages) {
    String tag =
        Stream.of(IMAGE, architecture, packages.replace(',', '-'))
            .filter(part -> !part.isEmpty())
            .collect(Collectors.joining("-"));
    if (MADE.add(tag)) {
      Path script = Installation.launcherOfCheckout().resolveSibling("container-image");
      List<String> line = new ArrayList<>(List.of(script.toString(), "--debian"));
      if (!architecture.isEmpty()) {
        line.addAll(List.of("--architecture", architecture));
      }
      if (!packages.isEmpty()) {
        line.addAll(List.of("--with", packages));
      }
      line.add(tag);
      Command.run(Map.of(), IMAGE_DEADLINE, line).expect(0);
    }
    return tag;
  }

  /** A file that scripts/package made; skips the test if there is none. */
  static Path built(String ending, String builds) throws IOException {
    Path target =
        Installation.launcherOfCheckout().resolve("../../distribution/target").normalize();
    assumeTrue(Files.isDirectory(target), "no package is built: " + builds + " builds it");
    try (Stream<Path> files = Files.list(target)) {
      Optional<Path> file = files.filter(f -> f.toString().endsWith(ending)).findFirst();
      assumeTrue(file.isPresent(), "no *" + ending + " is built: " + builds + " builds it");
      return file.orElseThrow();
    }
  }

  void copyIn(Path file, String to) {
    container.copyFileToContainer(MountableFile.forHostPath(file), to);
  }

  /** Runs a line of shell as root, which is killed if it takes too long. */
  Command run(String line) {
    return Containers.run(container, deadlineSeconds, "bash", "-c", line);
  }

  /** Runs it and answers what it printed; fails if it does. */
  String expect(String line) {
    return run(line).expect(0).out();
  }

  /** A source to mount, and two mount points. */
  void makeSource() {
    expect(
        "mkdir -p /source/d /mnt/a /mnt/b && seq 100000 >/source/numbers && echo x >/source/d/x");
  }

  void assertServes(String mountpoint) {
    expect(
        "cmp /source/numbers " + mountpoint + "/numbers && cmp /source/d/x " + mountpoint + "/d/x");
  }

  String jarsOfDaemon() {
    return expect("readlink /proc/$(pgrep -o -x java)/fd/* | grep 'lib/pmfs/lib/'");
  }

  void awaitNoDaemon() {
    Await.until(
        "no process of pmfs",
        SOON,
        () -> run("pgrep -x java; pgrep -f '[p]mfs-supervise'").out().isEmpty());
  }

  @Override
  public void close() {
    run("umount -a -l -t fuse.pmfs");
    container.stop();
  }
}
