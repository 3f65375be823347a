package io.pmfs.it;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What commands draw on a terminal, and that Ctrl-C leaves it as it was. */
final class TerminalIT {
  /**
   * Runs a command on a terminal of the given size, types Ctrl-C when its output has matched a
   * pattern, and passes on its output and exit status. Fails if the modes of the terminal changed.
   */
  static final String TERMINAL =
      """
      import fcntl, os, pty, re, select, struct, sys, termios, time
      rows, columns, pattern, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
      master, slave = pty.openpty()
      fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
      before = termios.tcgetattr(slave)
      child = os.fork()
      if child == 0:
          os.setsid()
          fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
          for descriptor in (0, 1, 2):
              os.dup2(slave, descriptor)
          os.environ['TERM'] = 'xterm'
          os.execvp(command[0], command)
      output, typed, status, deadline = b'', False, None, time.monotonic() + 60
      while status is None or select.select([master], [], [], 0)[0]:
          if select.select([master], [], [], 0.05)[0]:
              output += os.read(master, 65536)
          if not typed and re.search(pattern.encode(), output):
              os.write(master, b'\\x03')
              typed = True
          if status is None:
              ended, raw = os.waitpid(child, os.WNOHANG)
              status = os.waitstatus_to_exitcode(raw) if ended else None
          if status is None and time.monotonic() > deadline:
              os.kill(child, 9)
              sys.exit('not done: %r' % output)
      if termios.tcgetattr(slave) != before:
          sys.exit('the modes of the terminal changed')
      sys.stdout.buffer.write(output)
      sys.exit(status)
      """;

  private static final String UP = "\\x1b\\[\\d+A";
  private static final String RESTORED = "\u001b[J\u001b[?25h\u001b[?7h";

  @Installed private Installation pmfs;
  private Path source;

  @BeforeEach
  void makeSource() {
    source = pmfs.directory("source");
    Command.run(
            "bash",
            "-euc",
            "for i in $(seq 16); do head -c 500000 /dev/urandom > \"$1/file-$i\"; done",
            "source",
            source.toString())
        .expect(0);
  }

  private Command onTerminal(int rows, int columns, String pattern, String... command) {
    List<String> options = List.of(String.valueOf(rows), String.valueOf(columns), pattern);
    return pmfs.runOnTerminal(TERMINAL, options, command);
  }

  /** Each painting but the first begins with a move up by the height of the one before it. */
  private static void assertPaintsInPlace(Command shown, int rows) {
    assertThat(shown.out()).contains("\u001b[?7l\u001b[?25l").contains(RESTORED);
    List<Integer> heights =
        Pattern.compile("\u001b\\[(\\d+)A")
            .matcher(shown.out())
            .results()
            .map(move -> Integer.valueOf(move.group(1)))
            .toList();
    assertThat(heights).isNotEmpty().allMatch(height -> height < rows);
    assertThat(heights.get(0)).as("the window is filled, or the block is whole").isPositive();
  }

  @ParameterizedTest
  @ValueSource(ints = {5, 50})
  void statusWatch_paintsInPlaceWithinTheWindow_untilCtrlC(int rows) {
    Requested.assume("cases", rows == 5, "");
    try (MountedPmfs mount = pmfs.mount(source)) {
      Command shown =
          onTerminal(rows, 80, UP, "status", "--watch", mount.mountpoint().toString()).expect(0);

      assertPaintsInPlace(shown, rows);
      assertThat(shown.out()).endsWith(RESTORED);
    }
  }

  @Test
  @OnRequest("cases")
  void profile_paintsInPlace_andCtrlCPrintsTheTotalsBelow() {
    try (MountedPmfs mount = pmfs.mount(source)) {
      Command shown = onTerminal(20, 80, UP, "profile", mount.mountpoint().toString()).expect(0);

      assertPaintsInPlace(shown, 20);
      assertThat(shown.out().substring(shown.out().lastIndexOf(RESTORED)))
          .startsWith(RESTORED + "\r\nIn all:\r\n");
    }
  }

  @Test
  void stage_of80Columns_drawsOneLineWithABar() {
    try (MountedPmfs mount = pmfs.mount(source)) {
      Command shown =
          onTerminal(
              24,
              80,
              "\\d\\d%[^\\n]*left",
              "stage",
              "--max-rate",
              "1M",
              mount.mountpoint().toString());

      assertThat(shown.exit()).isEqualTo(130);
      String drawn = new String(shown.out().getBytes(ISO_8859_1), UTF_8);
      String line = drawn.substring(0, drawn.indexOf('\n')).replace("^C", "");
      assertThat(line.split("\r"))
          .filteredOn(part -> part.startsWith("staging"))
          .isNotEmpty()
          .allSatisfy(part -> assertThat(part).hasSize(79))
          .anyMatch(part -> part.matches("staging \\d+% \\|[^|]{15,40}\\| .* left.*"));
    }
  }

  @Test
  @OnRequest("cases")
  void withoutATerminal_linesArePlain() {
    try (MountedPmfs mount = pmfs.mount(source)) {
      String path = mount.mountpoint().toString();
      Command stage = pmfs.run("stage", "--max-rate", "1M", path).expect(0);
      assertThat(stage.out() + stage.err())
          .contains("staging: ", " left")
          .doesNotContain("\u001b", "\r");
    }
  }
}
