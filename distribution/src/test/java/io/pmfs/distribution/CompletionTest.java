package io.pmfs.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cli.Documentation;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What bash is offered when it asks the completion function. */
final class CompletionTest {
  private static final String MOUNTS =
      """
      /dev/sda1 / ext4 rw 0 0
      pmfs#/lustre/a /mnt/a fuse.pmfs ro 0 0
      pmfs#/lustre/b /mnt/with\\\\040blank fuse.pmfs ro 0 0
      other /mnt/other fuse.sshfs rw 0 0
      """;

  @TempDir private Path directory;
  private String script = "";

  @BeforeEach
  void write() throws Exception {
    script = Completion.of(Documentation.commands());
    Files.createDirectory(directory.resolve("train"));
    Files.createDirectory(directory.resolve("two words"));
    Files.writeString(directory.resolve("tar"), "");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "pmfs st                                 | stage status",
        "pmfs --ver                              | --verbose --version",
        "pmfs help un                            | ",
        "pmfs help um                            | umount",
        "pmfs mount --read-mode @                | auto page-cache passthrough",
        "pmfs mount --read-mode = pa             | page-cache passthrough",
        "pmfs mount --read-mode =                | auto page-cache passthrough",
        "pmfs run --eviction @                   | none lru",
        "pmfs config --bridge j                  | jnr",
        "pmfs mount --log-level @                | error warn info debug trace",
        "pmfs mount --source-form t              | tar",
        "pmfs mount --compression @              | none zstd auto",
        "pmfs mount --remote-copies k            | keep",
        "pmfs pack --sort s                      | size shuffle:",
        "pmfs mount --keep-free @                | ",
        "pmfs mount --nest                       | --nested",
        "pmfs mount --no-nest                    | --no-nested",
        "pmfs umount @                           | /mnt/a;/mnt/with blank",
        "pmfs --verbose status --json /mnt/w     | /mnt/with blank",
        "pmfs umount --grace 10s /mnt/a          | /mnt/a",
        "pmfs mount t                            | train;two words",
        "pmfs run --source t                     | train;two words",
        "pmfs run --source = tr                  | train",
        "pmfs bugreport -o ta                    | tar",
        "pmfs stage t                            | tar;train;two words",
        "pmfs run --source train -- bash --vers  | ",
      })
  void words_atTheCursor_areOffered(String line, String offered) throws Exception {
    String separator = offered == null || offered.contains(";") ? ";" : " ";
    List<String> expected =
        offered == null
            ? List.of()
            : offered.startsWith("/mnt/with")
                ? List.of(offered)
                : List.of(offered.split(separator));

    assertThat(ask(line.replace("@", "''"))).containsExactlyInAnyOrderElementsOf(expected);
  }

  @Test
  void command_ofRun_isOfThisMachine() throws Exception {
    assertThat(ask("pmfs run --source train -- bas")).contains("bash");
  }

  @Test
  void commands_all_areOffered() throws Exception {
    assertThat(ask("pmfs ''"))
        .contains("mount", "umount", "run", "stage", "status", "doctor", "bugreport", "help");
  }

  private List<String> ask(String line) throws IOException, InterruptedException {
    Program.require("bash");
    String program =
        """
        %s
        _pmfs_mounts() { printf '%s'; }
        cd '%s'
        COMP_WORDS=(%s)
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _complete_pmfs
        for each in "${COMPREPLY[@]}"; do printf '%%s\\n' "$each"; done
        """
            .formatted(script, MOUNTS, directory, line);
    return Program.run(program, "bash", "-u").lines().toList();
  }
}
