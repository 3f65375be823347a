package io.pmfs.cli.tasks;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cli.TestWorld;
import io.pmfs.machine.ExitStatus;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.Registration;
import java.nio.file.Path;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ExportTest {
  @TempDir private Path temporary;

  /** Bytes that are no UTF-8 look alike once decoded. */
  @Test
  void export_keepsTheBytesOfNames() throws Exception {
    TestWorld world = new TestWorld(temporary);
    Path mnt = world.makeDirectory("mnt");
    String source = world.makeDirectory("src").toString();
    world.makeDirectory("to");
    world.mountinfo(TestWorld.line(mnt, "fuse.pmfs", source));
    shell(
        "mkdir mnt/d; for n in M%bller; do for b in '\\0374' '\\0366'; do"
            + " f=$(printf \"$n\" $b); echo \"$f\" > mnt/d/\"$f\"; done; done");
    try (Registration registration = Objects.requireNonNull(world.registry().register(mnt))) {
      registration.publish(
          DaemonRecord.of(mnt.toString(), source, 1, registration.socket().toString(), "/log")
              .withDevice("0:30"));
      int status =
          world.execute("drain", "--export", mnt + "/d", temporary + "/to", mnt.toString());
      assertThat(world.errors()).isEmpty();
      assertThat(status).isEqualTo(ExitStatus.DONE);
    }
    shell("diff -r mnt/d to/d");
  }

  private void shell(String script) throws Exception {
    ProcessBuilder shell = new ProcessBuilder("sh", "-c", script);
    shell.directory(temporary.toFile()).redirectErrorStream(true);
    Process process = shell.start();
    String output = new String(process.getInputStream().readAllBytes(), UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
  }
}
