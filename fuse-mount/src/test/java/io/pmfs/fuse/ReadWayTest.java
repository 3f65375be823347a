package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fuse.protocol.KernelReply;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.source.FaultyStore;
import io.pmfs.source.FaultyStore.Answer;
import io.pmfs.stage.Stager;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The path of a read is as documented in docs/architecture.md. */
final class ReadWayTest {
  private static final int PIPED_BYTES = 131_072;

  private static final Pattern STEP = Pattern.compile("^ {6}(\\d)  (\\w+) .*");

  @TempDir private Path directory;

  /** The steps of a hit that the page lists. */
  private static List<String> documented() throws Exception {
    List<String> steps = new ArrayList<>();
    boolean isHere = false;
    for (String line : Files.readAllLines(Path.of("../docs/architecture.md"))) {
      isHere = line.startsWith("## ") ? line.equals("## The way of a read") : isHere;
      Matcher step = STEP.matcher(line);
      if (isHere && step.matches()) {
        assertThat(step.group(1)).isEqualTo(String.valueOf(steps.size() + 1));
        steps.add(step.group(2));
      }
    }
    return steps;
  }

  /** This program's classes on the stack of the calling thread, callers first. */
  private static List<String> way() {
    List<String> classes = new ArrayList<>();
    StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE)
        .forEach(
            frame -> {
              Class<?> type = frame.getDeclaringClass();
              String name = type.getSimpleName();
              if (type.getName().startsWith("io.pmfs.")
                  && (classes.isEmpty() || !classes.get(0).equals(name))) {
                classes.add(0, name);
              }
            });
    return classes;
  }

  @Test
  void hit_goesDownTheDocumentedObjectsAndNoOthers() throws Exception {
    List<List<String>> ways = new CopyOnWriteArrayList<>();
    try (KernelFixture fixture = new KernelFixture(directory)) {
      long number = fixture.inode("large");
      try (KernelSession session = fixture.session()) {
        session.ask(Opcode.READ, number, KernelMessages.read(0, PIPED_BYTES));
        fixture.awaitStaged();
        session.whenPiped(() -> ways.add(way()));
        session.ask(Opcode.READ, number, KernelMessages.read(0, PIPED_BYTES));
      }
    }

    assertThat(ways).hasSize(1);
    List<String> way = ways.get(0);
    int reply = way.indexOf(KernelReply.class.getSimpleName());
    assertThat(way.subList(0, reply)).hasSize(6).isEqualTo(documented());
  }

  @Test
  void miss_turnsFromTheStagerToTheFetchAndNotBack() throws Exception {
    List<List<String>> ways = new CopyOnWriteArrayList<>();
    try (KernelFixture fixture = new KernelFixture(directory);
        KernelSession session = fixture.session()) {
      long number = fixture.inode("small");
      fixture.faulty.faults(
          (operation, path, offset) -> {
            if (operation == FaultyStore.Operation.READ) {
              ways.add(way());
            }
            return Answer.WHOLE;
          });
      session.ask(Opcode.READ, number, KernelMessages.read(0, PIPED_BYTES));
    }

    assertThat(ways).hasSize(1);
    assertThat(ways.get(0)).containsOnlyOnce(Stager.class.getSimpleName());
    assertThat(ways.get(0)).containsSubsequence("Stager", "ReadThrough", "Fetches", "OpenSource");
  }
}
