package io.pmfs.it;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** More files open in passthrough than the list of them has room for at first. */
@OnRequest(value = "large", what = "17,000 open files")
final class OpenFilesIT {
  private static final int FILES = 17_000;
  private static final Duration LIFETIME = Duration.ofMinutes(10);

  private static final String MAKE =
      """
      import os, sys
      for i in range(int(sys.argv[2])):
          if i % 1000 == 0:
              os.makedirs(f"{sys.argv[1]}/d{i // 1000:03}")
          with open(f"{sys.argv[1]}/d{i // 1000:03}/{i}", "wb") as file:
              file.write((b"%d\\n" % i) * 500)
      """;

  /**
   * Opens all, and says so; at each line on its input reads all that is open, and opens and reads
   * all once more.
   */
  private static final String HOLD =
      """
      import os, resource, sys
      hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
      resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
      def path(i):
          return f"{sys.argv[1]}/d{i // 1000:03}/{i}"
      def compare(file, i):
          content = (b"%d\\n" % i) * 500
          found = os.pread(file, len(content) + 1, 0)
          assert found == content, f"{path(i)}: {found[:20]}"
      held = [os.open(path(i), os.O_RDONLY) for i in range(int(sys.argv[2]))]
      print("open", flush=True)
      for line in sys.stdin:
          for i, file in enumerate(held):
              compare(file, i)
              again = os.open(path(i), os.O_RDONLY)
              compare(again, i)
              os.close(again)
          print("equal", flush=True)
      """;

  @Test
  void files_openInPassthrough_surviveARestart() throws Exception {
    try (Installation pmfs = new Installation()) {
      Path source = pmfs.directory("source");
      Command.run(Map.of(), LIFETIME, List.of("python3", "-c", MAKE, source.toString(), "" + FILES))
          .expect(0);
      try (MountedPmfs mount = BridgeMode.PASSTHROUGH.mount(pmfs, LIFETIME, source)) {
        pmfs.run(LIFETIME, "stage", mount.mountpoint().toString()).expect(0);
        // The first reader of a copy has it verified, and is answered by the daemon.
        String read =
            "cd '" + mount.mountpoint() + "' && find . -type f -print0 | xargs -0 cat | wc -c";
        Command.run(Map.of(), LIFETIME, List.of("bash", "-c", read)).expect(0);
        long before = mount.status().number("reads.opensLeftToKernel");
        Process holder =
            new ProcessBuilder("python3", "-c", HOLD, mount.mountpoint().toString(), "" + FILES)
                .redirectErrorStream(true)
                .start();
        try (BufferedReader said =
            new BufferedReader(new InputStreamReader(holder.getInputStream(), UTF_8))) {
          assertThat(said.readLine()).isEqualTo("open");
          assertThat(mount.status().number("reads.opensLeftToKernel") - before).isEqualTo(FILES);
          long killed = mount.daemon();
          mount.killDaemon();
          mount.awaitSuccessor(killed);
          assertSays(holder, said);
          assertThat(mount.status().number("reads.errors")).isZero();
        } finally {
          holder.destroyForcibly().waitFor(60, TimeUnit.SECONDS);
        }
      }
    }
  }

  private static void assertSays(Process holder, BufferedReader said) throws IOException {
    holder.getOutputStream().write('\n');
    holder.getOutputStream().flush();
    assertThat(said.readLine()).isEqualTo("equal");
  }
}
