package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** Checks that pmfs understands the commands that the pages show. */
final class DocumentedCommandsTest {
  @TempDir private Path temporary;
  private TestWorld world;

  @BeforeEach
  void makeWorld() {
    world = new TestWorld(temporary);
  }

  @Test
  void commands_inBlocksOfCode_areUnderstood() {
    List<String> wrong = new ArrayList<>();
    int count = 0;
    for (MarkdownPage page : Repository.pages()) {
      for (MarkdownPage.Code code : page.code()) {
        if (code.language().equals("diff")) {
          continue; // changes the program instead of using it
        }
        for (MarkdownPage.Piece line : joined(code)) {
          for (List<String> command : ShellLine.commands(line.text())) {
            int name = nameIn(command);
            if (name >= 0) {
              count++;
              String problem = problemOf(command.subList(name + 1, command.size()));
              if (problem != null) {
                wrong.add(page.at(line.line()) + ": " + line.text().strip() + ": " + problem);
              }
            }
          }
        }
      }
    }
    assertThat(wrong).isEmpty();
    assertThat(count).isGreaterThan(40);
  }

  /** In a sentence, a command may omit arguments that do not matter there. */
  @Test
  void commands_insideSentences_areKnown() {
    List<String> wrong = new ArrayList<>();
    for (MarkdownPage page : Repository.pages()) {
      for (MarkdownPage.Piece span : page.spans()) {
        for (List<String> command : ShellLine.commands(span.text())) {
          int name = nameIn(command);
          if (isFirst(command, name) && !isKnown(command.subList(name + 1, command.size()))) {
            wrong.add(page.at(span.line()) + ": " + span.text());
          }
        }
      }
    }
    assertThat(wrong).isEmpty();
  }

  @Test
  void problem_ofWhatIsNoCommand_isTold() {
    assertThat(problemOf(List.of("stage", "/mnt/dataset"))).isNull();
    assertThat(problemOf(List.of("stage", "--fast", "/mnt/dataset"))).contains("--fast");
    assertThat(problemOf(List.of("unmount", "/mnt/dataset"))).contains("unmount");
    assertThat(problemOf(List.of("umount"))).contains("MOUNTPOINT");
    assertThat(problemOf(List.of("mount", "--tier", "hdd:/local", "/a", "/b"))).contains("hdd");
    assertThat(isKnown(List.of("stage", "--order"))).isTrue();
    assertThat(isKnown(List.of("stage", "--fast"))).isFalse();
    assertThat(isKnown(List.of("unmount"))).isFalse();
  }

  @Test
  void line_takenApart_givesItsCommands() {
    assertThat(
            ShellLine.commands(
                "A=1 pmfs pack 'a b' >log 2>&1 && x | pmfs status --json > f # pmfs no"))
        .containsExactly(
            List.of("A=1", "pmfs", "pack", "a b"),
            List.of("1"),
            List.of("x"),
            List.of("pmfs", "status", "--json"));
  }

  /** The index of pmfs in a command; -1 if the command does not call it (mount -t pmfs). */
  private static int nameIn(List<String> command) {
    int bare = command.indexOf("pmfs");
    int index = bare >= 0 ? bare : command.indexOf("scripts/pmfs");
    boolean isType = index > 0 && command.get(index - 1).matches("-t|/.*");
    return index + 1 < command.size() && index >= 0 && !isType ? index : -1;
  }

  /** Whether only variables precede the name, so that it is not a word of a sentence. */
  private static boolean isFirst(List<String> command, int name) {
    return name >= 0 && command.subList(0, name).stream().allMatch(w -> w.matches("[A-Z_]+=.*"));
  }

  /** Joins lines that end with a backslash with the next. */
  private static List<MarkdownPage.Piece> joined(MarkdownPage.Code code) {
    List<MarkdownPage.Piece> joined = new ArrayList<>();
    StringBuilder text = new StringBuilder();
    int first = 0;
    for (MarkdownPage.Piece line : code.lines()) {
      first = text.length() == 0 ? line.line() : first;
      if (line.text().endsWith("\\")) {
        text.append(line.text(), 0, line.text().length() - 1);
      } else {
        joined.add(new MarkdownPage.Piece(first, text + line.text()));
        text.setLength(0);
      }
    }
    return joined;
  }

  private @Nullable String problemOf(List<String> arguments) {
    return CommandLines.problemOf(arguments, world);
  }

  /** Whether the command and its options exist; a name in capitals stands for any command. */
  private boolean isKnown(List<String> arguments) {
    String name = arguments.get(0);
    CommandLine commands = PmfsCommand.commands(world.invocation());
    if (name.matches("[A-Z].*|\\.\\.\\.|…")) {
      return true;
    }
    CommandLine command = name.startsWith("-") ? commands : commands.getSubcommands().get(name);
    return command != null
        && arguments.stream()
            .takeWhile(argument -> !argument.equals("--"))
            .filter(argument -> argument.startsWith("--"))
            .map(argument -> argument.replaceAll("[=\\[].*", ""))
            .allMatch(option -> command.getCommandSpec().findOption(option) != null);
  }
}
