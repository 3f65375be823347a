package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * docs/tutorial.md does what it says: its commands run in one shell, with fewer photos. {@code
 * target/tutorial} has what they printed and drew.
 */
@OnRequest(value = "jobs", what = "the tutorial, with a job under Slurm")
final class TutorialIT {
  private static final Path CHECKOUT =
      Installation.launcherOfCheckout().resolve("../..").normalize();
  private static final String MODULES = "import torch, torchvision, PIL, numpy, matplotlib";

  /** 6 MB at 1 MB/s: an epoch from the source takes much longer than one from copies. */
  private static final String PHOTOS = System.getProperty("pmfs.tutorial.photos", "60");

  private static final String RATE = System.getProperty("pmfs.tutorial.rate", "1M");

  private static final Pattern EPOCH =
      Pattern.compile("epoch (\\d): ([\\d.]+) s, .*?(?:so far: (\\d+) MB)?");
  private static final Pattern FENCE = Pattern.compile("```(\\w*)");

  @Installed private Installation pmfs;
  private LocalSlurm slurm;

  /** A run of train: the seconds of each epoch, and how many MB the source had then given. */
  private record Training(List<Double> seconds, List<String> megabytes) {}

  @BeforeEach
  void start() {
    Machine.requireFuse();
    Machine.requireRoot();
    Machine.requireCommand("bindfs");
    Machine.requireCommand("jq");
    assumeTrue(
        Command.run("/usr/bin/python3", "-c", MODULES).exit() == 0,
        "needs PyTorch: scripts/install-requirements tutorial");
    Path nothing = Path.of("/bin/true");
    slurm =
        new LocalSlurm(LocalSlurm.Kind.PLAIN, pmfs.directory("slurm"), nothing, nothing, nothing);
  }

  @AfterEach
  void stop() {
    if (slurm != null) {
      slurm.close();
    }
  }

  @Test
  void page_executed_doesWhatItSays() throws IOException {
    List<String> commands = new ArrayList<>(List.of("set -euo pipefail", "set -x"));
    List<String> quoted = new ArrayList<>();
    takeApart(Files.readAllLines(CHECKOUT.resolve("docs/tutorial.md")), commands, quoted);
    Path script = Files.write(pmfs.scratch().root().resolve("commands"), commands);
    Map<String, String> environment = new HashMap<>(slurm.environment());
    environment.putAll(Map.of("photos", PHOTOS, "rate", RATE));
    environment.put("port", Integer.toString(freePort()));

    Command walk =
        pmfs.program(
            environment,
            Duration.ofMinutes(20),
            "env",
            "-C",
            CHECKOUT.toString(),
            "bash",
            script.toString());

    keep(walk);
    assertThat(walk.exit()).as(walk.out() + walk.err()).isZero();
    List<String> said = walk.out().lines().map(this::withoutFigures).toList();
    assertThat(quoted).hasSizeGreaterThan(10);
    assertThat(said).as(walk.out()).containsAll(quoted);
    assertThat(Mounts.below(pmfs.scratch().root())).isEmpty();
    checkEpochs(trainings(walk.out()), walk.out());
  }

  private void keep(Command walk) throws IOException {
    Path kept = Files.createDirectories(Path.of("target/tutorial"));
    Files.writeString(kept.resolve("output.txt"), walk.out().replace(home(), "~"));
    Files.writeString(kept.resolve("errors.txt"), walk.err().replace(home(), "~"));
    for (String name : List.of("epochs.json", "epochs.svg")) {
      Path made = Path.of(home(), name);
      if (Files.exists(made)) {
        Files.copy(made, kept.resolve(name), StandardCopyOption.REPLACE_EXISTING);
      }
    }
  }

  private String home() {
    return pmfs.scratch().root().resolve("home").toString();
  }

  /** From the source, through a mount, in a run with the copies of that mount, in a job without. */
  private static void checkEpochs(List<Training> trainings, String said) {
    assertThat(trainings).as(said).hasSize(4).allMatch(t -> t.seconds().size() == 3);
    double slow = Collections.min(trainings.get(0).seconds());
    double fast = 0.6 * slow;
    Training mounted = trainings.get(1);
    assertThat(mounted.megabytes()).as(said).doesNotContainNull();
    assertThat(mounted.megabytes().stream().distinct()).as("read in epoch 1 alone").hasSize(1);
    assertThat(trainings.get(2).seconds()).as("copies are there: %s", said).allMatch(s -> s < fast);
    for (Training withoutCopies : List.of(mounted, trainings.get(3))) {
      List<Double> seconds = withoutCopies.seconds();
      assertThat(seconds.get(0)).as("no copies are there: %s", said).isGreaterThan(0.9 * slow);
      assertThat(seconds.subList(1, 3)).as(said).allMatch(s -> s < fast);
    }
  }

  private static List<Training> trainings(String said) {
    List<Training> trainings = new ArrayList<>();
    for (String line : said.lines().toList()) {
      Matcher epoch = EPOCH.matcher(line);
      if (epoch.matches()) {
        if (epoch.group(1).equals("1")) {
          trainings.add(new Training(new ArrayList<>(), new ArrayList<>()));
        }
        Training last = trainings.get(trainings.size() - 1);
        last.seconds().add(Double.parseDouble(epoch.group(2)));
        last.megabytes().add(epoch.group(3));
      }
    }
    return trainings;
  }

  /** Indented blocks are commands; fenced ones quote what the commands print. */
  private void takeApart(List<String> page, List<String> commands, List<String> quoted) {
    boolean fenced = false;
    for (String line : page) {
      if (FENCE.matcher(line).matches()) {
        fenced = !fenced;
      } else if (fenced && !line.isBlank()) {
        quoted.add(withoutFigures(line));
      } else if (!fenced && line.startsWith("    ")) {
        commands.add(line.substring(4));
      }
    }
  }

  /** A line without what differs from run to run: numbers and their units, keys, the home. */
  private String withoutFigures(String line) {
    return line.replace(home(), "~")
        .replaceAll("-[0-9a-f]{16}\\b", "-N")
        .replaceAll("run\\.\\w{8}\\b", "run.N")
        .replaceAll("\\d+([.,]\\d+)*(E\\d+)?", "N")
        .replaceAll("N [KMG]?i?B\\b", "N B")
        .replaceAll("\\s+", " ")
        .strip();
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }
}
