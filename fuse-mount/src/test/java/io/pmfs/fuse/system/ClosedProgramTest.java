package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.common.base.Splitter;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A program in a directory that only root can enter makes changes as other users. */
class ClosedProgramTest {
  @Test
  void changesOfAnotherUser_areAtTheSource(@TempDir Path directory) throws Exception {
    assumeTrue(LibC.INSTANCE.geteuid() == 0, "needs root");
    Path program = Files.createDirectory(directory.resolve("program"));
    Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwx------"));
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
                "--add-opens=java.base/java.io=ALL-UNNAMED"));
    command.addAll(List.of("-cp", copied(program), ClosedProgramTest.class.getName()));
    command.add(Files.createDirectory(directory.resolve("work")).toString());
    Process run = new ProcessBuilder(command).redirectErrorStream(true).start();
    String output = new String(run.getInputStream().readAllBytes(), UTF_8);
    assertThat(run.waitFor()).as(output).isZero();
  }

  /** A class path whose directories are copied into one that only its owner can enter. */
  private static String copied(Path program) throws Exception {
    List<String> path = new ArrayList<>();
    List<String> entries =
        Splitter.on(File.pathSeparatorChar).splitToList(System.getProperty("java.class.path"));
    for (String entry : entries) {
      Path copy = program.resolve(String.valueOf(path.size()));
      path.add(entry.endsWith(".jar") ? entry : copy.toString());
      if (!entry.endsWith(".jar")) {
        assertThat(new ProcessBuilder("cp", "-r", entry, copy.toString()).start().waitFor())
            .isZero();
      }
    }
    return String.join(File.pathSeparator, path);
  }

  public static void main(String[] arguments) throws Exception {
    WritableDirectoriesTest test = new WritableDirectoriesTest();
    test.directory = Path.of(arguments[0]);
    test.makeSource();
    test.files_ofAnotherUser_areMadeAsThatUser();
    System.exit(0);
  }
}
