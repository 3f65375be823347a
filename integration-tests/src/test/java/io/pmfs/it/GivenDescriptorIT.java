package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * {@code pmfs mount SOURCE /dev/fd/N}: another program opens /dev/fuse and mounts, and pmfs serves
 * without any right of its own.
 */
final class GivenDescriptorIT {
  private static final String NOBODY = "65534";

  private static final String MOUNT_AND_SERVE =
      """
      exec 9<>/dev/fuse || exit
      LIBMOUNT_FORCE_MOUNT2=always mount -n -i -t fuse.pmfs \
        -o ro,nosuid,nodev,fd=9,rootmode=40000,user_id=65534,group_id=65534,default_permissions \
        -- "$2" "$3" || exit
      exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --bounding-set=-all \
        "$1" mount --foreground --tier "ssd:$4" --keep-free 0 "$2" /dev/fd/9
      """;

  private Scratch code;
  private Installation pmfs;
  private Dataset dataset;
  private Path log;
  private @Nullable Process daemon;

  @BeforeEach
  void makeSource() {
    Machine.requireRoot();
    Machine.requireFuse();
    Machine.requireCommand("setpriv");
    code = new Scratch();
    pmfs = new Installation(Installation.launcherForAll(code), OtherUser.prefix(NOBODY, NOBODY));
    pmfs.giveTo(Integer.parseInt(NOBODY), Integer.parseInt(NOBODY));
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(20, 300_000));
    log = pmfs.scratch().root().resolve("log");
  }

  @AfterEach
  void end() throws InterruptedException {
    Process started = daemon;
    if (started != null) {
      started.destroyForcibly().waitFor();
    }
    if (Mounts.at(pmfs.mountpoint())) {
      MountedPmfs.detach(pmfs.mountpoint());
    }
    pmfs.close();
    code.close();
  }

  private Process start() throws IOException {
    List<String> line =
        List.of(
            "bash",
            "-c",
            MOUNT_AND_SERVE,
            "-",
            code.root().resolve("scripts/pmfs").toString(),
            dataset.root().toString(),
            pmfs.mountpoint().toString(),
            pmfs.tier().toString());
    Process started =
        Command.builder(pmfs.environment(), line)
            .redirectErrorStream(true)
            .redirectOutput(log.toFile())
            .start();
    daemon = started;
    return started;
  }

  /** The kernel lets readers wait until the daemon answers. */
  private Command compare() {
    return reader("diff", "-r", dataset.root().toString(), pmfs.mountpoint().toString());
  }

  private static Command reader(String... command) {
    List<String> line = new ArrayList<>(OtherUser.prefix(NOBODY, NOBODY));
    line.addAll(List.of(command));
    return Command.run(line.toArray(String[]::new));
  }

  private void awaitMounted(Process started) {
    Await.until(
        "mounted",
        Duration.ofSeconds(20),
        () -> Mounts.at(pmfs.mountpoint()) || !started.isAlive());
  }

  @Test
  void mount_onADescriptor_servesUntilTheOtherProgramUnmounts() throws Exception {
    Process started = start();
    awaitMounted(started);
    compare().expect(0);
    Command.run("umount", "-i", pmfs.mountpoint().toString()).expect(0);
    assertThat(started.waitFor(30, TimeUnit.SECONDS)).isTrue();
    assertThat(started.exitValue()).as(Files.readString(log)).isZero();
    assertThat(pmfs.copies()).isNotEmpty();
  }

  @Test
  void signal_endsTheDaemonAndTheSession() throws Exception {
    Process started = start();
    awaitMounted(started);
    // What the kernel has cached can be read without a daemon: listings only after this.
    reader("cat", pmfs.mountpoint().resolve(dataset.items().get(0).name()).toString()).expect(0);
    started.destroy();
    assertThat(started.waitFor(30, TimeUnit.SECONDS)).isTrue();
    assertThat(compare().err()).contains("Transport endpoint is not connected");
  }

  @Test
  void mount_onAnotherFile_isRefused() {
    Command refused =
        pmfs.run(pmfs.mountArguments(dataset.root(), Path.of("/dev/fd/0"), "--foreground"));
    refused.expect(2);
    assertThat(refused.errorLines())
        .containsExactly(
            "pmfs: /dev/fd/0: mount point: not an open /dev/fuse; mount first, and start pmfs with"
                + " --foreground and that descriptor");
  }
}
