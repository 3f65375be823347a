package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The contents of single pieces of a report. */
final class PiecesTest {
  private static final long ANYBODY = -1;

  @TempDir private Path directory;

  private long uid() throws IOException {
    return ((Integer) Files.getAttribute(directory, "unix:uid")).longValue();
  }

  @Test
  void last_longFile_beginsWithAWholeLine() throws IOException {
    Path file = directory.resolve("x.log");
    Files.writeString(file, "0123456789\n".repeat(200_000));

    String text = new String(Objects.requireNonNull(Tail.last(file, ANYBODY)), UTF_8);

    assertThat(text).hasSizeBetween(Tail.MOST - 11, Tail.MOST).startsWith("0123").endsWith("9\n");
    assertThat(new String(Objects.requireNonNull(Tail.first(file, ANYBODY)), UTF_8))
        .hasSizeBetween(Tail.MOST - 11, Tail.MOST)
        .startsWith("0123")
        .endsWith("9\n");
    assertThat(Tail.last(directory.resolve("absent"), ANYBODY)).isNull();
  }

  @Test
  void last_notARegularFile_isRefused() {
    assertThatThrownBy(() -> Tail.last(directory, ANYBODY)).hasMessageContaining("not a regular");
  }

  @Test
  void last_ofAUsersDirectory_takesThatUsersPlainFilesOnly() throws IOException {
    Path secret = Files.writeString(directory.resolve("shadow"), "x");
    Path link = Files.createSymbolicLink(directory.resolve("link.log"), secret);

    assertThat(Tail.last(secret, uid())).isNotNull();
    assertThatThrownBy(() -> Tail.last(link, uid())).hasMessageContaining("not a regular");
    assertThatThrownBy(() -> Tail.last(secret, uid() + 1)).hasMessageContaining("of user");
    Files.createLink(directory.resolve("second"), secret);
    assertThatThrownBy(() -> Tail.last(secret, uid())).hasMessageContaining("not a file of");
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

    String kept = new String(CrashLog.withoutMemory(log.getBytes(ISO_8859_1)), ISO_8859_1);

    assertThat(kept)
        .contains("SIGSEGV", "libx.so", "P R O C E S S", "Threads class", "Signal Handlers")
        .doesNotContain("hunter2", "68756e74", "RAX", "A_TOKEN");
  }

  @Test
  void concerning_mountinfo_hasOursAndThoseThatHoldThePaths() {
    MountLines lines =
        new MountLines(
            """
            1 0 8:1 / / rw - ext4 /dev/sda1 rw
            2 1 0:20 / /lustre rw - lustre x@tcp:/l rw
            3 1 0:21 / /other rw - nfs h:/x rw
            4 1 0:55 / /mnt/a\\040b ro - fuse.pmfs /lustre/x ro
            5 1 0:56 / /mnt/c ro - fuse.sshfs h: ro
            """);

    assertThat(lines.concerning(List.of("/lustre/x")))
        .contains("lustre", "fuse.pmfs")
        .doesNotContain("nfs", "sshfs", "ext4")
        .endsWith("of 5 lines\n");
    assertThat(lines.concerning(List.of("/local/x"))).contains("ext4");
    assertThat(lines.connection("/mnt/a b")).isEqualTo(55);
    assertThat(lines.connection("/mnt/c")).isEqualTo(-1);
  }

  /** By then another mount is at its path. */
  @Test
  void connection_ofAMountThatIsDetached_isItsOwn() throws Exception {
    write("proc/self/mountinfo", "4 1 0:55 / /mnt/a ro - fuse.pmfs /lustre/x ro\n");
    write("sys/fs/fuse/connections/55/waiting", "5555\n");
    write("sys/fs/fuse/connections/44/waiting", "4444\n");

    assertThat(connection("0:44")).contains("4444").doesNotContain("5555");
    assertThat(connection(null)).contains("5555");
  }

  private String connection(@Nullable String device) throws Exception {
    MountPieces.Mount mount =
        new MountPieces.Mount("/mnt/a", device, 0, ANYBODY, directory.resolve("log"), null);
    for (Piece piece : new MountPieces(directory, mount, "m").pieces(Set.of())) {
      if (piece.name().equals("m/fuse-connection.txt")) {
        return new String(Objects.requireNonNull(piece.content().call()), UTF_8);
      }
    }
    throw new AssertionError("no such piece");
  }

  @Test
  void text_environment_showsKnownNamesOnly() {
    String text =
        Environment.text(
            Map.of("PMFS_TIER", "ssd:/x", "PMFS_NODES_KEY", "k", "EDITOR", "hunter2", "TZ", "UTC"),
            Set.of("PMFS_TIER", "PMFS_NODES_KEY"));

    assertThat(text)
        .isEqualTo("PMFS_NODES_KEY=[removed]\nPMFS_TIER=ssd:/x\nTZ=UTC\nand 1 others, not shown\n");
  }

  @Test
  void commandLine_secretAfterItsOption_isRemoved() {
    assertThat(ProcessPieces.commandLine("java\0--cluster-secret\0hunter2\0--tier\0ssd:/x\0"))
        .isEqualTo("java\n--cluster-secret\n[removed]\n--tier\nssd:/x\n");
  }

  @Test
  void tierSizes_ofADirectory_hasNumbersAndNoNames() throws IOException {
    Files.createDirectory(directory.resolve("sub"));
    Files.write(directory.resolve("sub/secret-name"), new byte[1234]);
    Files.write(directory.resolve("other"), new byte[5]);

    assertThat(TierSizes.text(directory))
        .contains("2 directories, 2 files, 1239 bytes, largest 1234, not readable 0")
        .doesNotContain("secret-name");
  }

  @Test
  void groups_secondVersion_readsUpToTheTop() throws IOException {
    write("proc/self/cgroup", "0::/job/step\n");
    write("sys/fs/cgroup/job/memory.max", "1073741824\n");
    write("sys/fs/cgroup/job/step/memory.max", "max\n");

    assertThat(new Groups(directory).text("self"))
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
