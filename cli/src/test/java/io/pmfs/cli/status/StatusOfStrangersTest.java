package io.pmfs.cli.status;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.JsonParser;
import io.pmfs.cli.TestWorld;
import io.pmfs.daemon.dataset.FakeDataset;
import io.pmfs.machine.ExitStatus;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.Registration;
import io.pmfs.mounts.Registry;
import io.pmfs.posix.Await;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Root's commands while another user's daemons answer anything. Needs root. */
@Timeout(120)
final class StatusOfStrangersTest {
  private static final int EVE = 4712;

  /** Answers each connection with a text, repeated several times. */
  private static final String SERVER =
      "use IO::Socket::UNIX; my ($path, $text, $times) = @ARGV;my $listening ="
          + " IO::Socket::UNIX->new(Local => $path, Listen => 64) or die $!;chmod 0777, $path; $| ="
          + " 1; print qq(ready\\n"
          + "); $SIG{PIPE} = 'IGNORE'; my @open;while (my $client = $listening->accept) { push"
          + " @open, $client;for (my $i = 0; $i < $times; $i++) { last unless print $client $text;"
          + " } $client->flush;}";

  private static final String OK = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

  @TempDir private Path temporary;
  private TestWorld world;
  private Path ofEve;
  private final List<Process> servers = new ArrayList<>();
  private final List<Registration> registrations = new ArrayList<>();
  private final List<FakeDataset> datasets = new ArrayList<>();
  private final List<CompletableFuture<Integer>> daemons = new ArrayList<>();

  @BeforeEach
  void make() throws Exception {
    world = new TestWorld(temporary);
    assumeTrue(world.uid == 0, "needs root");
    Files.setPosixFilePermissions(world.directory, PosixFilePermissions.fromString("rwxr-xr-x"));
    ofEve = world.makeDirectory("run-" + EVE);
    mount();
  }

  /** A mount of root, which must be shown whatever the others do. */
  private void mount() throws Exception {
    TestWorld daemonWorld = new TestWorld(temporary);
    daemonWorld.opener =
        (settings, session) -> {
          FakeDataset dataset = new FakeDataset(settings, world);
          datasets.add(dataset);
          return dataset;
        };
    world.makeDirectory("src");
    world.makeDirectory("mnt");
    daemons.add(
        CompletableFuture.supplyAsync(
            () -> daemonWorld.execute("mount", "--foreground", "src", "mnt")));
    Await.until("mounted", () -> daemonWorld.output().contains("mounted on"));
  }

  @AfterEach
  void end() throws Exception {
    for (Process server : servers) {
      server.destroyForcibly().waitFor();
    }
    registrations.forEach(Registration::close);
    datasets.forEach(FakeDataset::close);
    for (CompletableFuture<Integer> daemon : daemons) {
      daemon.get(30, TimeUnit.SECONDS);
    }
  }

  /** A daemon of Eve's. */
  private void serve(String name, int uid, String text, long times) throws Exception {
    Path mountpoint = Path.of("/mnt/" + name);
    Registration registration = Objects.requireNonNull(Registry.own(ofEve).register(mountpoint));
    registrations.add(registration);
    registration.publish(DaemonRecord.of(mountpoint.toString(), "/s", 1, "/x", "/log"));
    give(ofEve);
    try (Stream<Path> files = Files.list(ofEve)) {
      for (Path file : files.toList()) {
        give(file);
      }
    }
    Process server =
        new ProcessBuilder(
                "setpriv",
                "--reuid=" + uid,
                "--clear-groups",
                "perl",
                "-e",
                SERVER,
                registration.socket().toString(),
                text,
                Long.toString(times))
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    servers.add(server);
    assertThat(server.inputReader().readLine()).isEqualTo("ready");
    give(registration.socket());
  }

  private static void give(Path path) throws IOException {
    Files.setAttribute(path, "unix:uid", EVE, LinkOption.NOFOLLOW_LINKS);
  }

  private static String answer(String json) {
    return OK + "Content-Length: " + json.length() + "\r\n\r\n" + json;
  }

  static List<String> answers() {
    String mountpoint = "\"mountpoint\":\"/mnt/x\"";
    return List.of(
        "garbage\r\n\r\n",
        answer("{}"),
        answer("null"),
        answer("[7]"),
        answer("{" + mountpoint + "}"),
        answer("{" + mountpoint + ",\"tiers\":[null]}"),
        answer("{" + mountpoint + ",\"tiers\":7}"),
        answer("{" + mountpoint + ",\"pid\":1e99999}"),
        answer("{" + mountpoint + ",\"engagement\":{},\"outputs\":{},\"task\":{}}"),
        answer("{" + mountpoint + ",\"x\":" + "[".repeat(50_000) + "]".repeat(50_000) + "}"),
        OK + "Content-Length: 999999999999999999999999\r\n\r\n",
        "HTTP/1.1 500 no\r\nContent-Length: 0\r\n\r\n");
  }

  @ParameterizedTest
  @MethodSource("answers")
  void status_strangersDaemonAnswersAnything_isOneLine(String text) throws Exception {
    serve("x", EVE, text, 1);
    checkStatus();
  }

  @Test
  void status_strangersDaemonAnswersWithoutEnd_isOneLine() throws Exception {
    serve("x", EVE, OK + "\r\n" + "[[[[".repeat(1000), Integer.MAX_VALUE);
    checkStatus();
  }

  @Test
  void status_socketOfAnotherUserInTheirDirectory_isSentNothing() throws Exception {
    Files.setPosixFilePermissions(ofEve, PosixFilePermissions.fromString("rwxrwxrwx"));
    serve("x", 4713, answer("{}"), 1);
    checkStatus();
    assertThat(world.errors()).contains("not a daemon of user 4712");
  }

  private void checkStatus() {
    long begin = System.nanoTime();
    assertThat(world.execute("status")).isEqualTo(ExitStatus.FAILED);
    assertThat(System.nanoTime() - begin).isLessThan(TimeUnit.SECONDS.toNanos(20));
    assertThat(world.output()).contains(" on " + world.directory.resolve("mnt") + "\n");
    assertThat(world.errors().lines())
        .hasSize(2)
        .anyMatch(line -> line.startsWith("pmfs: /mnt/x: pid 1"))
        .anyMatch(line -> line.contains("not all mounts answered"));

    assertThat(world.execute("status", "--json")).isEqualTo(ExitStatus.FAILED);
    assertThat(JsonParser.parseString(world.output()).getAsJsonArray()).hasSize(1);
    assertThat(world.execute("status", "--all-nodes")).isEqualTo(ExitStatus.FAILED);
    assertThat(world.errors().lines()).anyMatch(line -> line.startsWith("pmfs: /mnt/x: "));
  }

  @Test
  void status_thirtySilentDaemonsOfOneUser_takesSecondsAndFewLines() throws Exception {
    for (int i = 0; i < 30; i++) {
      serve("silent" + i, EVE, "", 1);
    }
    long begin = System.nanoTime();
    assertThat(world.execute("status")).isEqualTo(ExitStatus.FAILED);
    assertThat(System.nanoTime() - begin).isLessThan(TimeUnit.SECONDS.toNanos(20));
    assertThat(world.output()).contains(" on " + world.directory.resolve("mnt") + "\n");
    assertThat(world.errors().lines()).hasSize(4);
    assertThat(world.errors()).contains("; and 27 more mounts of user 4712");
  }
}
