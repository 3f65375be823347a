package io.pmfs.it;

import static io.pmfs.it.NodeCacheBed.ADA;
import static io.pmfs.it.NodeCacheBed.BOB;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Whatever of a node's cache and its mounts is killed, only readers of a mount notice whose own
 * daemon has no supervisor.
 */
@OnRequest(value = "large", what = "35 kills of a service, daemons and supervisors")
final class NodeCacheKillsIT {
  private static final int ROUNDS = 5;
  private static final int MORE = 30;
  private static final int LONGEST_PAUSE_MILLIS = 2000;
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final Duration LIFETIME = Duration.ofMinutes(20);

  /** Small ones, more than a mount keeps open, and some that are read while they are copied. */
  private static final int[] SIZES =
      IntStream.range(0, 600).map(i -> i % 20 == 7 ? 10_000_000 : 20_000).toArray();

  /** A copy that has this much, and not all, is probably waited for. */
  private static final long GROWING_BYTES = 1_000_000;

  /** What {@link ReadLoop} says of a wrong read. */
  private static final Pattern WRONG = Pattern.compile("(\\d+) bytes, wrong from (\\d+)");

  private final Random random = new Random(1);
  private NodeCacheBed bed;
  private long reads;
  private Duration longest = Duration.ZERO;
  private int endedReaders;
  private int kills;

  @BeforeEach
  void start() throws IOException {
    bed = new NodeCacheBed();
  }

  @AfterEach
  void remove() {
    if (bed != null) {
      bed.close();
    }
  }

  /** A mount whose files are read all the time. */
  private interface ReadMount {
    /** Waits until more was read; fails if a read failed or was wrong. */
    void awaitMore();

    /** Stops reading. */
    void end() throws Exception;
  }

  private void count(long more, Duration slowest) {
    reads += more;
    longest = slowest.compareTo(longest) > 0 ? slowest : longest;
  }

  /** A mount by root, with a supervisor. */
  private final class RootMount implements ReadMount {
    private final Dataset dataset;
    private final Path mountpoint;
    private MountedPmfs mount;
    private Readers readers;

    RootMount(String name, Dataset dataset) {
      this.dataset = dataset;
      this.mountpoint = bed.pmfs().directory("mnt-" + name);
      begin();
    }

    private void begin() {
      String[] line =
          bed.pmfs()
              .mountArguments(dataset.root(), mountpoint, "--node-cache", bed.socket().toString());
      Command mounted = bed.pmfs().run(line).expect(0);
      mount = new MountedPmfs(bed.pmfs(), dataset.root(), mountpoint, LIFETIME, mounted.out());
      readers = new Readers(dataset, mountpoint, 2, dataset.items().subList(0, 20));
      awaitMore();
    }

    @Override
    public void awaitMore() {
      readers.awaitMore(MORE);
      readers.assertNoFailures();
    }

    /** Its readers wait for the next one. */
    void killDaemon() {
      long daemon = mount.daemon();
      killAndAwait(daemon);
      mount.awaitSuccessor(daemon);
    }

    /** The daemon goes on; if it dies, too, the next mount cleans up. */
    void killSupervisor() {
      long daemon = mount.daemon();
      killAndAwait(ProcessHandle.of(daemon).flatMap(ProcessHandle::parent).orElseThrow().pid());
      awaitMore();
      endReaders();
      killAndAwait(daemon); // which leaves a dead mount
      mount.ended();
      begin();
    }

    private void endReaders() {
      readers.close();
      readers.assertNoFailures();
      count(readers.reads(), readers.longest());
    }

    @Override
    public void end() {
      endReaders();
      mount.close();
    }
  }

  /** A mount by a user, which ends with its daemon and which only this user can enter. */
  private final class UserMount implements ReadMount {
    private final int user;
    private final Dataset dataset;
    private final Path output;
    private Path mountpoint;
    private Process program;

    UserMount(int user, Dataset dataset) throws IOException {
      this.user = user;
      this.dataset = dataset;
      this.output = bed.pmfs().scratch().root().resolve("reads-" + user);
      begin();
    }

    private void begin() throws IOException {
      mountpoint = bed.mount(user, "m", dataset);
      program =
          bed.start(
              user,
              output,
              Path.of(System.getProperty("java.home"), "bin", "java").toString(),
              "-Xmx128m",
              "-XX:TieredStopAtLevel=1",
              "-cp",
              bed.pmfs().directory("classes").toString(),
              ReadLoop.class.getName(),
              mountpoint.toString());
      awaitMore();
    }

    private String said() {
      return new String(Dataset.read(output), UTF_8);
    }

    /** How many reads there were, and the milliseconds of the longest. */
    private long[] progress() {
      // A line may not be whole yet.
      String said = said();
      List<String> lines = said.substring(0, said.lastIndexOf('\n') + 1).lines().toList();
      List<String> figures = lines.stream().filter(line -> line.matches("\\d+ \\d+")).toList();
      String last = figures.isEmpty() ? "0 0" : figures.get(figures.size() - 1);
      return List.of(last.split(" ", -1)).stream().mapToLong(Long::parseLong).toArray();
    }

    @Override
    public void awaitMore() {
      long goal = progress()[0] + MORE;
      Await.until(
          () -> "reads of " + user + ": " + said(),
          PATIENCE,
          () -> progress()[0] >= goal || !program.isAlive());
      assertThat(program.isAlive()).as("%s read on: %s", user, said()).isTrue();
    }

    /** The guard unmounts. Its own reader may fail, but never gets a wrong byte. */
    void killDaemon() throws Exception {
      killAndAwait(bed.status(user, mountpoint).number("pid"));
      Await.until("it is unmounted", PATIENCE, () -> !Mounts.at(mountpoint));
      assertThat(program.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
      endedReaders++;
      // What there was until the daemon died is a part of a file, at most.
      for (MatchResult wrong : WRONG.matcher(said()).results().toList()) {
        assertThat(wrong.group(2)).as(said()).isEqualTo(wrong.group(1));
      }
      count(progress()[0], Duration.ofMillis(progress()[1]));
      begin();
    }

    @Override
    public void end() throws Exception {
      awaitMore();
      count(progress()[0], Duration.ofMillis(progress()[1]));
      program.destroyForcibly().waitFor();
      bed.by(user, bed.launcher().toString(), "umount", mountpoint.toString()).expect(0);
    }
  }

  private void killAndAwait(long process) {
    kills++;
    Command.run("kill", "-KILL", Long.toString(process)).expect(0);
    Await.until(process + " ended", PATIENCE, () -> !MountedPmfs.runs(process));
  }

  /** The reader's classes where all users get to. */
  private void copyReader() throws IOException {
    for (Class<?> one : List.of(ReadLoop.class, Dataset.Item.class)) {
      String name = one.getName().replace('.', '/') + ".class";
      Path copy = bed.pmfs().directory("classes").resolve(name);
      Files.createDirectories(copy.getParent());
      try (InputStream in = one.getClassLoader().getResourceAsStream(name)) {
        Files.copy(Objects.requireNonNull(in), copy);
      }
    }
  }

  /** Once while it has copies, and once while it makes them again. */
  private void killService() throws Exception {
    killServiceOnce();
    remove(bed.copies());
    bed.begin();
    Await.until("a copy grows", PATIENCE, this::isCopying);
    killServiceOnce();
    bed.serve();
  }

  private void killServiceOnce() throws InterruptedException {
    kills++;
    bed.kill();
    Thread.sleep(random.nextInt(LONGEST_PAUSE_MILLIS)); // readers use the source
  }

  private boolean isCopying() {
    Path incoming = bed.copies().resolve("incoming");
    return Files.isDirectory(incoming)
        && Installation.files(incoming).stream()
            .anyMatch(file -> file.toFile().length() > GROWING_BYTES);
  }

  private static void remove(Path directory) throws IOException {
    Files.walkFileTree(
        directory,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
              throws IOException {
            Files.delete(file);
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult postVisitDirectory(Path inner, @Nullable IOException e)
              throws IOException {
            if (!inner.equals(directory)) {
              Files.delete(inner);
            }
            return FileVisitResult.CONTINUE;
          }
        });
  }

  @Test
  void kill9_ofServiceDaemonsAndSupervisors_failsNoReadOfOthers() throws Exception {
    bed.pmfs().environment("PMFS_CRASH_LIMIT", "100");
    bed.serve();
    copyReader();
    Dataset common = bed.dataset("common", ADA, SIZES);
    RootMount ofRoot = new RootMount("a", common);
    RootMount orphaned = new RootMount("b", bed.dataset("equal", BOB, SIZES));
    UserMount ofAda = new UserMount(ADA, common);
    UserMount ofBob = new UserMount(BOB, common);
    List<ReadMount> all = List.of(ofRoot, orphaned, ofAda, ofBob);
    for (int round = 0; round < ROUNDS; round++) {
      for (Killing next :
          List.<Killing>of(
              this::killService,
              ofRoot::killDaemon,
              ofAda::killDaemon,
              orphaned::killSupervisor,
              ofBob::killDaemon)) {
        Thread.sleep(random.nextInt(LONGEST_PAUSE_MILLIS));
        next.run();
        all.forEach(ReadMount::awaitMore);
      }
    }
    Status report = bed.report();
    for (ReadMount one : all) {
      one.end();
    }
    System.out.printf(
        "%d kills, %d right reads, the longest %d ms; %d readers ended with their own mount;"
            + " %d copies%n",
        kills, reads, longest.toMillis(), endedReaders, report.number("room.copies"));
    assertThat(report.number("answered")).isPositive();
  }

  /** Kills one process, and puts things right. */
  private interface Killing {
    void run() throws Exception;
  }
}
