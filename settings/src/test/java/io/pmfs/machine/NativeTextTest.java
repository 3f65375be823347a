package io.pmfs.machine;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

final class NativeTextTest {
  private static final List<String> AWKWARD =
      List.of("ä", "日本", "a b", "\"'$`\\x", "line\n\nends\n", "%s%b", "-n");

  @Test
  void environment_block_isReadAsUtf8() {
    byte[] block = "A=ä\0B=x=y\0EMPTY=\0broken\0".getBytes(UTF_8);

    assertThat(NativeText.parseEnvironment(block))
        .containsEntry("A", "ä")
        .containsEntry("B", "x=y")
        .containsEntry("EMPTY", "")
        .hasSize(3);
  }

  @Test
  void environment_ofThisProcess_hasPath() throws Exception {
    assertThat(NativeText.environment()).containsKey("PATH");
  }

  @Test
  void process_awkwardArguments_arriveAsUtf8() throws Exception {
    String script = "for a; do printf '%s\\0' \"$a\"; done";
    List<String> command = new java.util.ArrayList<>(List.of("sh", "-c", script, "x"));
    command.addAll(AWKWARD);

    assertThat(run(NativeText.process(command))).isEqualTo(String.join("\0", AWKWARD) + "\0");
  }

  @Test
  void process_underLatin1DefaultCharset_argumentsStillArriveAsUtf8() throws Exception {
    // As in the daemon: the charset can only be set when a JVM starts.
    ProcessBuilder jvm =
        new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Dfile.encoding=ISO-8859-1",
            "-cp",
            System.getProperty("java.class.path"),
            Echo.class.getName());
    jvm.environment().put("LC_ALL", "C.UTF-8");

    assertThat(run(jvm)).isEqualTo(ISO_8859_1.name() + " ä日本");
  }

  @Test
  void arguments_thatAreNoUtf8_keepTheirBytes() {
    byte[] line = "java\0-cp\0x\0Main\0stage\0a\u00ffb\0\u00c3\u00a4\0".getBytes(ISO_8859_1);

    String[] arguments = NativeText.arguments(line, "stage", "a\ufffdb", "ä");

    assertThat(arguments).containsExactly("stage", "a\udcffb", "ä");
    assertThat(NativeText.bytes(arguments[1])).containsExactly('a', 0xff, 'b');
    assertThat(NativeText.bytes("ä😀")).isEqualTo("ä😀".getBytes(UTF_8));
  }

  @Test
  void arguments_ofAnotherCommandLine_stay() {
    assertThat(NativeText.arguments("x\0".getBytes(UTF_8), "a\ufffd", "b"))
        .containsExactly("a\ufffd", "b");
  }

  private static String run(ProcessBuilder builder) throws Exception {
    Process process = builder.redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), UTF_8);
    assertThat(process.waitFor(30, TimeUnit.SECONDS)).isTrue();
    return output;
  }

  /** Runs in a separate JVM. */
  static final class Echo {
    private Echo() {}

    public static void main(String[] args) throws Exception {
      Process process = NativeText.process(List.of("printf", "%s", "ä日本")).start();
      byte[] output = process.getInputStream().readAllBytes();
      System.out.print(java.nio.charset.Charset.defaultCharset().name() + " ");
      System.out.write(output);
      System.out.flush();
    }
  }
}
