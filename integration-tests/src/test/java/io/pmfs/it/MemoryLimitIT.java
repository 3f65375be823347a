package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A daemon in a cgroup with 300 MiB of memory, and a dataset of three times that. */
@OnRequest(value = "large", what = "reads 900 MiB several times")
final class MemoryLimitIT {
  private static final Duration LIFETIME = Duration.ofMinutes(8);

  /** Files of 10 MiB, in which each MiB is another. */
  private static final String MAKE =
      """
      import os, sys
      common = os.urandom(1 << 20)
      for i in range(90):
          with open(f"{sys.argv[1]}/f{i}", "wb") as file:
              for mib in range(10):
                  file.write(b"%8d%8d" % (i, mib) + common[16:])
      """;

  @Installed(byRoot = true)
  private Installation pmfs;

  private ControlGroup group;
  private Path source;

  @BeforeEach
  void makeGroup() throws IOException {
    group = new ControlGroup("memory");
    group.set("memory.limit_in_bytes", Long.toString(300L << 20));
    source = pmfs.directory("source");
    run("python3", "-c", MAKE, source.toString());
  }

  @AfterEach
  void removeGroup() {
    if (group != null) {
      group.close();
    }
  }

  private static void run(String... line) {
    Command.run(Map.of(), LIFETIME, List.of(line)).expect(0);
  }

  private MountedPmfs mount(String... options) throws IOException {
    MountedPmfs mount = pmfs.mount(LIFETIME, source, options);
    group.add(mount.daemon());
    return mount;
  }

  private void assertReadsRight(MountedPmfs mount) {
    run("diff", "-r", source.toString(), mount.mountpoint().toString());
  }

  private void assertHealthy(MountedPmfs mount, long daemon) {
    pmfs.run("status", mount.mountpoint().toString()).expect(0);
    assertThat(mount.daemon()).isEqualTo(daemon);
  }

  @Test
  void readOnly_isReadStagedAndVerified() throws IOException {
    try (MountedPmfs mount = mount()) {
      long daemon = mount.daemon();
      assertReadsRight(mount);
      pmfs.run(LIFETIME, "stage", mount.mountpoint().toString()).expect(0);
      assertReadsRight(mount);
      pmfs.run(LIFETIME, "verify", mount.mountpoint().toString()).expect(0);
      assertHealthy(mount, daemon);
    }
  }

  @Test
  void writable_isReadWrittenAndDrained() throws IOException {
    try (MountedPmfs mount = mount("--writable")) {
      long daemon = mount.daemon();
      assertReadsRight(mount);
      String mountpoint = mount.mountpoint().toString();
      run("sh", "-c", "cp \"$1\"/f[0-4]? \"$2\"", "-", source.toString(), scratch());
      run(
          "sh",
          "-c",
          "for f in \"$1\"/*; do cp $f \"$2\"/new-${f##*/}; done",
          "-",
          scratch(),
          mountpoint);
      pmfs.run(LIFETIME, "drain", mountpoint).expect(0);
      assertReadsRight(mount);
      assertHealthy(mount, daemon);
    }
  }

  /** The supervisor is in the group, too, and so are the daemons that it starts. */
  @Test
  void readOnly_whoseHeapRunsOut_isReplacedInTheGroup() throws IOException {
    Path process = pmfs.directory("switch");
    pmfs.environment("PMFS_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 " + ErrorAgent.option(process));
    try (MountedPmfs mount = mount()) {
      long daemon = mount.daemon();
      long supervisor = ProcessHandle.of(daemon).orElseThrow().parent().orElseThrow().pid();
      group.add(supervisor);
      for (String kind : List.of("thread", "direct", "stack", "class")) {
        assertThat(ErrorSwitch.throwIn(process, "heartbeat", 5, kind, ErrorSwitch::pause))
            .isNotEmpty();
      }
      assertThat(mount.daemon()).isEqualTo(daemon);
      String where =
          ErrorSwitch.throwIn(
              process, "fuse-", 50, ErrorSwitch.FILLED_HEAP, () -> assertReadsRight(mount));
      assertThat(where).isNotEmpty();
      mount.awaitSuccessor(daemon);
      assertReadsRight(mount);
      assertThat(group.pids()).contains(Long.toString(mount.daemon()));
    }
  }

  private String scratch() {
    return pmfs.directory("written").toString();
  }
}
