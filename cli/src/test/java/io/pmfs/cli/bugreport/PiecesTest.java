package io.pmfs.cli.bugreport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The contents of a report's pieces. */
final class PiecesTest {
  private static final long ANYBODY = -1;

  @TempDir private Path directory;

  private long uid() throws IOException {
    return ((Integer) Files.getAttribute(directory, "unix:uid")).longValue();
  }

  private static @Nullable String last(Path file, long owner) throws IOException {
    return OwnFiles.lines(file, owner, true);
  }

  @Test
  void last_longFile_beginsWithAWholeLine() throws IOException {
    Path file = directory.resolve("x.log");
    Files.writeString(file, "0123456789\n".repeat(200_000));

    for (boolean isEnd : List.of(true, false)) {
      assertThat(OwnFiles.lines(file, ANYBODY, isEnd))
          .hasSizeBetween(OwnFiles.MOST_OF_LOG - 11, OwnFiles.MOST_OF_LOG)
          .startsWith("0123")
          .endsWith("9\n");
    }
    assertThat(last(directory.resolve("absent"), ANYBODY)).isNull();
  }

  @Test
  void last_notARegularFile_isRefused() {
    assertThatThrownBy(() -> last(directory, ANYBODY)).hasMessageContaining("not a regular");
  }

  @Test
  void last_ofAUsersDirectory_takesThatUsersPlainFilesOnly() throws IOException {
    Path secret = Files.writeString(directory.resolve("shadow"), "x");
    Path link = Files.createSymbolicLink(directory.resolve("link.log"), secret);

    assertThat(last(secret, uid())).isNotNull();
    assertThatThrownBy(() -> last(link, uid())).hasMessageContaining("not a regular");
    assertThatThrownBy(() -> last(secret, uid() + 1)).hasMessageContaining("of user");
    Files.createLink(directory.resolve("second"), secret);
    assertThatThrownBy(() -> last(secret, uid())).hasMessageContaining("not a file of");
  }

  @Test
  void withoutMemory_crashLog_hasFramesAndNoBytesOfMemory() {
    String log =
        """
        # SIGSEGV (0xb) at pc=0x00007f
        ---------------  T H R E A D  ---------------
        Native frames:
        C  [libx.so+0x1]
        Registers:
        RAX=0x68756e7465723221
        Register to memory mapping:

        RAX=hunter2 is a string
        Top of Stack: (sp=0x00)
        0x00: 68756e74
        ---------------  P R O C E S S  ---------------
        Threads class SMR info:
        Environment Variables:
        PATH=/usr/bin
        A_TOKEN=hunter2

        Signal Handlers:
        """;

    String kept = OwnFiles.withoutMemory(log);

    assertThat(kept)
        .contains("SIGSEGV", "libx.so", "P R O C E S S", "Threads class", "Signal Handlers")
        .doesNotContain("hunter2", "68756e74", "RAX", "A_TOKEN");
  }

  @Test
  void mounts_ofMountinfo_hasOursAndThoseThatHoldThePaths() throws IOException {
    String lines =
        """
        1 0 8:1 / / rw - ext4 /dev/sda1 rw
        2 1 0:20 / /lustre rw - lustre x@tcp:/l rw
        3 1 0:21 / /other rw - nfs h:/x rw
        4 1 0:55 / /mnt/a\\040b ro - fuse.pmfs /lustre/x ro
        5 1 0:56 / /mnt/c ro - fuse.sshfs h: ro
        """;
    write("proc/self/mountinfo", lines);

    assertThat(KernelFiles.mounts(lines, List.of("/lustre/x")))
        .contains("lustre", "4 1 0:55 / /mnt/a\\040b ro - fuse.pmfs /lustre/x ro\n")
        .doesNotContain("nfs", "sshfs", "ext4")
        .endsWith("of 5 lines\n");
    assertThat(KernelFiles.mounts(lines, List.of("/local/x"))).contains("ext4");
    assertThat(kernel().connection(null, "/mnt/a b")).contains("connections/55/waiting");
    assertThat(kernel().connection(null, "/mnt/c")).startsWith("nothing is mounted there");
  }

  private KernelFiles kernel() {
    return new KernelFiles(directory);
  }

  /** Another mount may be at the path. */
  @Test
  void connection_ofAMountThatIsDetached_isItsOwn() throws IOException {
    write("proc/self/mountinfo", "4 1 0:55 / /mnt/a ro - fuse.pmfs /lustre/x ro\n");
    write("sys/fs/fuse/connections/55/waiting", "5555\n");
    write("sys/fs/fuse/connections/44/waiting", "4444\n");

    assertThat(kernel().connection("0:44", "/mnt/a")).contains("4444").doesNotContain("5555");
    assertThat(kernel().connection(null, "/mnt/a")).contains("5555");
  }

  @Test
  void text_environment_showsKnownNamesOnly() {
    String text =
        KernelFiles.variables(
            Map.of("PMFS_TIER", "ssd:/x", "PMFS_NODES_KEY", "k", "EDITOR", "hunter2", "TZ", "UTC"),
            Set.of("PMFS_TIER", "PMFS_NODES_KEY"));

    assertThat(text)
        .isEqualTo("PMFS_NODES_KEY=[removed]\nPMFS_TIER=ssd:/x\nTZ=UTC\nand 1 others, not shown\n");
  }

  @Test
  void commandLine_secretAfterItsOption_isRemoved() {
    assertThat(KernelFiles.commandLine("java\0--cluster-secret\0hunter2\0--tier\0ssd:/x\0"))
        .isEqualTo("java\n--cluster-secret\n[removed]\n--tier\nssd:/x\n");
  }

  @Test
  void tierSizes_ofADirectory_hasNumbersAndNoNames() throws IOException {
    Files.createDirectory(directory.resolve("sub"));
    Files.write(directory.resolve("sub/secret-name"), new byte[1234]);
    Files.write(directory.resolve("other"), new byte[5]);

    assertThat(OwnFiles.sizes(directory))
        .contains("2 directories, 2 files, 1239 bytes, largest 1234, not readable 0")
        .doesNotContain("secret-name");
  }

  @Test
  void groups_secondVersion_readsUpToTheTop() throws IOException {
    write("proc/self/cgroup", "0::/job/step\n");
    write("sys/fs/cgroup/job/memory.max", "1073741824\n");
    write("sys/fs/cgroup/job/step/memory.max", "max\n");

    assertThat(kernel().groups("self"))
        .contains(
            "/sys/fs/cgroup/job/step/memory.max: max",
            "/sys/fs/cgroup/job/memory.max: 1073741824",
            "/sys/fs/cgroup/memory.max: (NoSuchFileException)");
  }

  private void write(String path, String text) throws IOException {
    Path file = directory.resolve(path);
    Files.createDirectories(file.resolveSibling(""));
    Files.writeString(file, text);
  }
}
