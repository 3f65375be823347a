package io.pmfs.daemon;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.settings.ExitStatus;
import io.pmfs.settings.MountFailure;
import io.pmfs.settings.NativeText;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Bind mounts by mount(8), which only root can make. */
public final class ExternalMount {
  private static final int MAX_SECONDS = 20;

  private ExternalMount() {}

  /** Binds one path to another; returns what mount(8) said, which is nothing if it succeeded. */
  public static String bind(Path from, Path to) throws MountFailure {
    try {
      Process process =
          NativeText.process(List.of("mount", "--bind", "--", from.toString(), to.toString()))
              .redirectErrorStream(true)
              .start();
      process.getOutputStream().close();
      if (!process.waitFor(MAX_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        return "mount does not return";
      }
      String said = new String(process.getInputStream().readNBytes(4096), UTF_8).strip();
      return process.exitValue() == 0 ? "" : said;
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, to + ": mount: " + e.getMessage(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new MountFailure(ExitStatus.FAILED, to + ": interrupted", e);
    }
  }
}
