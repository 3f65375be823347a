package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A user who may write in the source of a mount by root leads nobody out of it by symbolic links:
 * where openat2(2) works, where the kernel lacks it (ENOSYS), and where a container's filter
 * refuses it (EPERM).
 */
@ParameterizedClass(name = "openat2 fails with {0}")
@ValueSource(ints = {0, SourceLinksIT.ENOSYS, SourceLinksIT.EPERM})
final class SourceLinksIT {
  static final int ENOSYS = 38;
  static final int EPERM = 1;

  /** Runs a command whose openat2(2) fails with the given errno: by a seccomp(2) filter. */
  private static final String REFUSING =
      """
      import ctypes, os, struct, sys
      errno = int(sys.argv[1])
      def step(code, yes, no, value): return struct.pack('HBBI', code, yes, no, value)
      code = (step(0x20, 0, 0, 0) + step(0x15, 0, 1, 437)
              + step(0x06, 0, 0, 0x00050000 | errno) + step(0x06, 0, 0, 0x7fff0000))
      text = ctypes.create_string_buffer(code, len(code))
      program = struct.pack('HxxxxxxP', len(code) // 8, ctypes.addressof(text))
      if errno and ctypes.CDLL(None).prctl(22, 2, ctypes.create_string_buffer(program), 0, 0) != 0:
          sys.exit('prctl failed')
      os.execvp(sys.argv[2], sys.argv[2:])
      """;

  @Parameter int errno;

  private Installation pmfs;
  private Path source;
  private Path outside;

  @BeforeEach
  void install() throws IOException {
    Requested.assume("modes", errno != EPERM, "the same with another errno");
    Machine.requireRoot();
    Machine.requireFuse();
    pmfs =
        new Installation(
            Installation.launcherOfCheckout(), List.of("python3", "-c", REFUSING, "" + errno));
    source = pmfs.directory("source");
    Files.createDirectories(source.resolve("d/e"));
    Files.writeString(source.resolve("d/e/file"), "inside");
    Command.run("chown", "-R", "65534:65534", source.toString()).expect(0);
    outside = pmfs.directory("outside");
    Files.createDirectories(outside.resolve("e"));
    Files.writeString(outside.resolve("e/secret"), "of root");
    Files.writeString(outside.resolve("e/file"), "of root");
    Command.run("chmod", "700", outside.toString()).expect(0);
  }

  @AfterEach
  void remove() {
    if (pmfs != null) {
      pmfs.close();
    }
  }

  private void byNobody(String script) {
    OtherUser.run("sh", "-ec", "cd " + source + "\n" + script).expect(0);
  }

  private static boolean isFiltered(long pid) throws IOException {
    return Files.readString(Path.of("/proc/" + pid + "/status")).contains("\nSeccomp:\t2\n");
  }

  @Test
  void directory_replacedByALinkAfterItWasListed_showsNothingBelowTheLink() throws IOException {
    try (MountedPmfs mount = pmfs.mount(source, "--allow-other")) {
      String at = mount.mountpoint().toString();
      assertThat(isFiltered(mount.pid())).isEqualTo(errno != 0);
      assertThat(OtherUser.run("ls", at + "/d").expect(0).out()).isEqualTo("e\n");
      byNobody("mv d kept; ln -s '" + outside + "' d");

      for (int i = 0; i < 3; i++) {
        Command list = OtherUser.run("ls", at + "/d/e");
        assertThat(list.out()).isEmpty();
        assertThat(list.exit()).isNotZero();
        for (String name : List.of("secret", "file")) {
          Command read = OtherUser.run("cat", at + "/d/e/" + name);
          assertThat(read.out()).isEmpty();
          assertThat(read.exit()).isNotZero();
        }
      }
      byNobody("rm d; mv kept d");
      assertThat(OtherUser.run("cat", at + "/d/e/file").expect(0).out()).isEqualTo("inside");
    }
  }

  @Test
  @OnRequest("cases")
  void directory_replacedWhileItIsStaged_copiesNothingBelowTheLink() {
    try (MountedPmfs mount = pmfs.mount(source, "--allow-other")) {
      OtherUser.run("ls", mount.mountpoint() + "/d/e").expect(0);
      byNobody("mv d kept; ln -s '" + outside + "' d");

      pmfs.run("stage", mount.mountpoint().toString());
      Command copies = Command.run("grep", "-rla", "of root", pmfs.directory("tier").toString());
      assertThat(copies.out()).isEmpty();
    }
  }

  @Test
  void source_throughALinkOfAnotherUser_isRefused() {
    byNobody("ln -s '" + outside + "' link");

    Command refused =
        pmfs.run(
            "mount",
            "--allow-other",
            source.resolve("link").toString(),
            "" + pmfs.directory("mnt"));

    refused.expect(2);
    assertThat(refused.err()).contains("belongs to user nobody");
    assertThat(refused.err()).contains("name the directory itself: " + outside);
  }

  @Test
  void indexBesideShards_thatIsALinkOrAPipe_isNotOpened() throws IOException {
    Requested.assume("modes", errno == 0, "the same with another errno");
    Path shards = pmfs.directory("shards");
    pmfs.run("pack", source.toString(), shards.toString()).expect(0);
    Path index = shards.resolve("pmfs-index.sst");
    Files.move(index, outside.resolve("index"));
    for (String make : List.of("ln -s '" + outside + "/index' ", "mkfifo ")) {
      Command.run("sh", "-c", make + index).expect(0);
      try (MountedPmfs mount = pmfs.mount(shards, "--allow-other", "--source-form", "tar")) {
        Command.run("cat", mount.mountpoint() + "/d/e/file").expect(0);
        assertThat(Files.readString(Path.of(mount.status().text("logFile"))))
            .contains("pmfs-index.sst: ");
      }
      Files.delete(index);
    }
  }

  @Test
  void mountsBelowTheSource_areServed() throws IOException {
    Path below = Files.createDirectory(source.resolve("d/mounted"));
    Command.run("mount", "-t", "tmpfs", "none", below.toString()).expect(0);
    try {
      Files.writeString(Files.createDirectory(below.resolve("x")).resolve("f"), "mounted");
      try (MountedPmfs mount = pmfs.mount(source, "--allow-other")) {
        assertThat(OtherUser.run("cat", mount.mountpoint() + "/d/mounted/x/f").expect(0).out())
            .isEqualTo("mounted");
      }
    } finally {
      Command.run("umount", below.toString()).expect(0);
    }
  }
}
