package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The examples in README and in the pages for users and administrators work as they are printed:
 * each block of shell runs in a container of a fresh Debian, as root with the Debian package and as
 * a user with the tar.gz. {@link DocumentedExample} says what is left out and why.
 */
@Tag("docker")
@OnRequest(value = "package", what = "the documents' examples in a fresh Debian")
final class DocumentsIT {
  private static final Path CHECKOUT =
      Installation.launcherOfCheckout().resolve("../..").normalize();
  private static final Path RESOURCES = CHECKOUT.resolve("integration-tests/src/test/resources");

  /** A watch prints much before the line that fails. */
  private static final int MOST_QUOTED = 1500;

  private CleanDebian machine;
  private boolean hasJava;
  private final List<String> wrong = new ArrayList<>();
  private final List<String> leftOut = new ArrayList<>();
  private int whole;
  private int partly;
  private int none;

  @BeforeEach
  void prepare() throws IOException {
    Containers.require();
    Path built = CHECKOUT.resolve("distribution/target");
    List<Path> packages = new ArrayList<>();
    if (Files.isDirectory(built)) {
      try (Stream<Path> files = Files.list(built)) {
        files
            .filter(f -> f.toString().matches(".*(\\.deb|\\.tar\\.gz|SHA256SUMS)"))
            .forEach(packages::add);
      }
    }
    assumeTrue(packages.size() >= 3, "no packages are built: scripts/package builds them");
    hasJava = packages.stream().anyMatch(f -> f.toString().endsWith("-java.tar.gz"));
    machine = CleanDebian.with("curl,jq");
    for (Path file : packages) {
      machine.copyIn(file, "/built/" + file.getFileName());
    }
    machine.copyIn(RESOURCES.resolve("documents"), "/documents");
  }

  @AfterEach
  void remove() {
    if (machine != null) {
      machine.run("chmod $(cat /fuse.mode) /dev/fuse");
      machine.close();
    }
  }

  @Test
  void examples_asRoot_work() throws IOException {
    walk("root");
  }

  @Test
  void examples_asUser_work() throws IOException {
    walk(DocumentedExample.USER);
  }

  private void walk(String user) throws IOException {
    machine.expect("bash /documents/prepare " + user);
    List<DocumentedExample.LeftOut> exceptions = DocumentedExample.exceptions(user, hasJava);
    Set<DocumentedExample.LeftOut> unused = new HashSet<>(exceptions);
    for (DocumentedExample example : DocumentedExample.all(CHECKOUT)) {
      List<String> lines = example.linesToRun(exceptions, unused, leftOut);
      if (lines.isEmpty()) {
        none++;
        continue;
      }
      Command ran = run(user, example, lines);
      if (ran.exit() != 0) {
        wrong.add(example + " as " + user + ": " + end(ran.out()) + end(ran.err()));
      } else if (lines.size() < example.commands().size()) {
        partly++;
      } else {
        whole++;
      }
    }
    report(user);
    assertThat(unused).as("exceptions without an example").isEmpty();
    assertThat(wrong).isEmpty();
    assertThat(whole).isGreaterThan(15);
  }

  private static String end(String text) {
    return text.substring(Math.max(0, text.length() - MOST_QUOTED));
  }

  private Command run(String user, DocumentedExample example, List<String> lines)
      throws IOException {
    Path script = Files.createTempFile("example", ".sh");
    try {
      Files.writeString(script, String.join("\0", lines) + "\0");
      machine.copyIn(script, "/example");
    } finally {
      Files.delete(script);
    }
    return machine.run(
        "chmod 644 /example; bash /documents/run %s %s".formatted(user, example.page()));
  }

  private void report(String user) throws IOException {
    List<String> lines = new ArrayList<>();
    lines.add(
        "documents as %s: %d blocks of examples worked whole, %d in part, %d were left out; %d failed"
            .formatted(user, whole, partly, none, wrong.size()));
    leftOut.forEach(line -> lines.add("documents as " + user + ": not run: " + line));
    lines.add("documents as " + user + ": not run: docs/tutorial.md: TutorialIT runs it");
    lines.forEach(System.out::println);
    Files.write(Files.createDirectories(Path.of("target/documents")).resolve(user + ".txt"), lines);
  }
}
