package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.cli.bugreport.Piece;
import io.pmfs.daemon.process.Version;
import io.pmfs.places.Surroundings;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;

/** The pieces about this installation of pmfs: version, Java, libraries, {@code pmfs doctor}. */
final class OwnPieces {
  private static final Duration SHORT = Duration.ofSeconds(5);
  private static final int DOCTOR_SECONDS = 15;
  private static final int MOST_BYTES = 1 << 20;

  private OwnPieces() {}

  static List<Piece> of(Surroundings surroundings) {
    return List.of(
        Piece.text(
            "pmfs.txt", "version, Java, libraries, user", SHORT, () -> installation(surroundings)),
        Piece.text(
            "doctor.json",
            "output of pmfs doctor --json",
            Duration.ofSeconds(DOCTOR_SECONDS + 5),
            () -> doctor(surroundings)));
  }

  private static String installation(Surroundings surroundings) {
    StringBuilder text = new StringBuilder();
    text.append("pmfs ").append(Version.withCommit()).append('\n');
    for (String property :
        List.of("java.vm.name", "java.vm.version", "java.vendor", "java.home", "os.arch")) {
      text.append(property).append(' ').append(System.getProperty(property)).append('\n');
    }
    text.append("flags ")
        .append(ManagementFactory.getRuntimeMXBean().getInputArguments())
        .append('\n');
    text.append("user ")
        .append(surroundings.uid())
        .append(" (")
        .append(surroundings.userName())
        .append("), in ")
        .append(surroundings.workingDirectory())
        .append("\n\n");
    for (String entry : classPath().split(File.pathSeparator, -1)) {
      File file = new File(entry);
      text.append(file.length()).append(' ').append(file).append('\n');
    }
    return text.toString();
  }

  private static String classPath() {
    return System.getProperty("java.class.path", "");
  }

  /** In a process of its own: a thread that looks at a hung mount cannot be ended. */
  private static String doctor(Surroundings surroundings) throws IOException {
    ProcessBuilder builder =
        new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Dfile.encoding=ISO-8859-1",
            "-XX:+UseSerialGC",
            "-XX:-UsePerfData",
            "-XX:TieredStopAtLevel=1",
            "-Xmx128m",
            "-cp",
            classPath(),
            Main.class.getName(),
            "doctor",
            "--json");
    Map<String, String> environment = builder.environment();
    environment.clear();
    environment.putAll(surroundings.environment());
    environment.put(Surroundings.LAUNCH_DIRECTORY, surroundings.workingDirectory().toString());
    Process process = builder.redirectError(ProcessBuilder.Redirect.DISCARD).start();
    process.getOutputStream().close();
    Executor later = CompletableFuture.delayedExecutor(DOCTOR_SECONDS, TimeUnit.SECONDS);
    later.execute(process::destroyForcibly);
    try (InputStream out = process.getInputStream()) {
      String findings = new String(out.readNBytes(MOST_BYTES), UTF_8);
      if (findings.isEmpty()) {
        throw new IOException("pmfs doctor printed nothing within " + DOCTOR_SECONDS + " s");
      }
      return findings;
    }
  }
}
