package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** A {@link HostileMember} on a node of its own. */
final class HostileProcess implements AutoCloseable {
  private final Process process;
  private final BufferedReader answers;

  /** Joins the cluster of a node that is mounted, and returns when it did. */
  HostileProcess(ClusterBed bed, Node at, Node mounted) throws IOException {
    Path dataset;
    try (Stream<Path> tier = Files.list(mounted.pmfs().tier())) {
      dataset = tier.filter(d -> !d.endsWith("state")).findFirst().orElseThrow();
    }
    process =
        at.startTalking(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx256m",
            "-cp",
            System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
            HostileMember.class.getName(),
            "job/" + dataset.getFileName(),
            bed.dataset().root().toString(),
            at.address(),
            bed.addresses(),
            bed.secret().toString());
    answers = process.inputReader();
    String line;
    while ((line = answers.readLine()) != null && !line.equals("joined")) {
      System.out.println(line);
    }
    assertThat(line).isEqualTo("joined");
  }

  /** How many answers it had spoiled before. */
  long become(HostileMember.Mode mode) throws IOException {
    process.outputWriter().write(mode + "\n");
    process.outputWriter().flush();
    return Long.parseLong(answers.readLine());
  }

  @Override
  public void close() {
    process.destroyForcibly();
  }
}
