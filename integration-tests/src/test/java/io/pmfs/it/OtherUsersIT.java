package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A writable mount of root's, whose users may rename what others have at the source. */
final class OtherUsersIT {
  private static final String OTHER = "4321";

  @Installed(byRoot = true)
  private Installation pmfs;

  private Path source;

  @BeforeEach
  void makeSource() throws IOException {
    source = pmfs.directory("source");
    Files.createDirectories(source.resolve("shared"));
    Command.run("chmod", "777", source.resolve("shared").toString()).expect(0);
  }

  private MountedPmfs mount(String... options) {
    List<String> all = new ArrayList<>(List.of("--writable", "--allow-other"));
    all.addAll(List.of(options));
    return pmfs.mount(source, all.toArray(String[]::new));
  }

  private Path theirFile(String name) throws IOException {
    Path file = source.resolve(name);
    Files.writeString(file, "secret");
    Command.run("chown", OTHER + ":" + OTHER, file.toString()).expect(0);
    Command.run("chmod", "600", file.toString()).expect(0);
    return file;
  }

  @Test
  void directory_ofAnotherUser_madeWhileTheChangeWaits_staysTheirs() throws Exception {
    Path place = source.resolve("shared/d");
    try (MountedPmfs mount = mount("--drain-rate", "1M")) {
      // What the change waits for.
      Command.run("sh", "-c", "head -c 4M /dev/urandom >" + mount.path("shared/large")).expect(0);
      OtherUser.run(
              "sh",
              "-euc",
              "cd -- \"$1\"; mkdir d; echo mine >d/file; chmod 777 d",
              "-",
              mount.path("shared"))
          .expect(0);
      assertThat(place).as("the source has it already: the drain is too fast").doesNotExist();
      Command.run("install", "-d", "-m700", "-o" + OTHER, "-g" + OTHER, place.toString()).expect(0);
      theirFile("shared/d/key");
      assertThat(pmfs.run("drain", mount.mountpoint().toString()).exit()).isEqualTo(4);

      assertThat(Files.getAttribute(place, "unix:uid")).isEqualTo(Integer.valueOf(OTHER));
      assertThat(Posix.stat(place.toString()).permissions()).isEqualTo(0700);
      assertThat(place.resolve("file")).doesNotExist();
      assertThat(Files.getAttribute(mount.mountpoint().resolve("shared/d"), "unix:uid"))
          .isEqualTo(Integer.valueOf(OTHER));
      assertThat(OtherUser.run("cat", mount.path("shared/d/key")).exit()).isNotZero();
      assertThat(pmfs.run("status", mount.mountpoint().toString()).out())
          .contains("shared/d/file", "another user made this directory");

      String mountpoint = mount.mountpoint().toString();
      pmfs.run("drain", "--acknowledge", mountpoint);
      pmfs.run("drain", "--drop", "shared/d/file", mountpoint).expect(0);
      pmfs.run("drain", mountpoint).expect(0);
      assertThat(Installation.files(source))
          .noneMatch(file -> file.toString().contains("pmfs-tmp"));
    }
  }

  @Test
  void file_ofAnotherUser_movedToThePlaceOfAnOpenOne_isNotRead() throws Exception {
    Path open = source.resolve("shared/open");
    Files.writeString(open, "public");
    Command.run("chmod", "666", open.toString()).expect(0);
    Path theirs = theirFile("shared/theirs");
    String program = "exec 3<\"$1\"; echo open; read go; cat <&3 2>&1; echo";
    try (MountedPmfs mount = mount()) {
      List<String> words = new ArrayList<>(OtherUser.prefix("65534", "65534"));
      words.addAll(List.of("sh", "-c", program, "-", mount.path("shared/open")));
      Process reader = new ProcessBuilder(words).redirectErrorStream(true).start();
      try (BufferedReader output =
          new BufferedReader(
              new InputStreamReader(reader.getInputStream(), StandardCharsets.UTF_8))) {
        assertThat(output.readLine()).isEqualTo("open");
        Files.move(theirs, open, StandardCopyOption.REPLACE_EXISTING);
        reader.getOutputStream().write('\n');
        reader.getOutputStream().close();
        assertThat(output.readLine()).isNotEqualTo("secret");
        assertThat(reader.waitFor()).isZero();
      } finally {
        reader.destroyForcibly();
      }
    }
  }
}
