package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.nio.file.Path;

/** Creates files that the JDK cannot create or name, through bash. */
public final class Shell {
  private Shell() {}

  /** The output of a script, one char per byte; throws if it fails. */
  public static String run(Path directory, String script) throws IOException {
    Process process =
        new ProcessBuilder("bash", "-ec", script)
            .directory(directory.toFile())
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), ISO_8859_1);
    int status = process.onExit().join().exitValue();
    if (status != 0) {
      throw new IOException("bash exited with " + status + ": " + output);
    }
    return output.stripTrailing();
  }
}
