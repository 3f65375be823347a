package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The hard limit of open files is 512, for the launcher and the daemon. */
final class FewDescriptorsIT {
  /** Writes to many files in turn, reads them all while they are open, and then closes them. */
  private static final String WRITE =
      """
      import os, sys
      os.chdir(sys.argv[1])
      files = [open(f"f{i}", "wb", buffering=0) for i in range(700)]
      for step in range(3):
          for i, file in enumerate(files):
              file.write(b"%d.%d\\n" % (step, i))
      for i in range(700):
          with open(f"f{i}", "rb") as file:
              assert file.read() == b"".join(b"%d.%d\\n" % (step, i) for step in range(3)), i
      """;

  @Test
  @OnRequest("cases")
  void files_moreThanDescriptors_areWrittenReadAndDrained() {
    Machine.requireFuse();
    Machine.requireRoot();
    Machine.requireCommand("prlimit");
    Machine.requireCommand("python3");
    try (Installation pmfs =
        new Installation(
            Installation.launcherOfCheckout(), List.of("prlimit", "--nofile=512:512"))) {
      Path source = pmfs.directory("source");
      try (MountedPmfs mount = pmfs.mount(source, "--writable")) {
        Command.run("python3", "-c", WRITE, mount.mountpoint().toString()).expect(0);
        pmfs.run("drain", mount.mountpoint().toString()).expect(0);
        assertThat(source.resolve("f699")).hasContent("0.699\n1.699\n2.699\n");
        assertThat(source.toFile().list()).hasSize(700);
      }
    }
  }
}
