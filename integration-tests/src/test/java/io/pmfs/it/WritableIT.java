package io.pmfs.it;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The life of a writable mount: docs/semantics.md, section 13. */
final class WritableIT {
  private static final Duration SOON = Duration.ofSeconds(60);

  @Installed(byRoot = true)
  private Installation pmfs;

  private Path source;

  @BeforeEach
  void makeSource() throws IOException {
    source = pmfs.directory("source");
    Files.createDirectories(source.resolve("old/deep"));
    Files.writeString(source.resolve("old/file"), "as it was\n");
    Files.writeString(source.resolve("old/deep/other"), "other\n");
  }

  private MountedPmfs mount(String... options) {
    List<String> all = new ArrayList<>(List.of("--writable", "--allow-other"));
    all.addAll(List.of(options));
    return pmfs.mount(source, all.toArray(String[]::new));
  }

  private static Command shell(MountedPmfs mount, String script) {
    return Command.run("sh", "-euc", "cd -- \"$1\"; " + script, "-", mount.mountpoint().toString());
  }

  private void drain(MountedPmfs mount) {
    pmfs.run("drain", mount.mountpoint().toString()).expect(0);
  }

  private void assertSourceEquals(MountedPmfs mount) {
    WholeTree.assertSourceEquals(source, mount);
  }

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void life_ofAMount_endsWithEverythingAtTheSource() {
    try (MountedPmfs mount = mount()) {
      shell(
              mount,
              """
              test "$(cat old/file)" = 'as it was'
              mkdir -p new/a/b
              echo first >new/a/b/file; echo second >>new/a/b/file
              test "$(cat new/a/b/file)" = "first
              second"
              mv new/a/b new/c
              ln -s ../old/file new/link; ln new/c/file new/hard
              printf X | dd of=old/file bs=1 seek=3 conv=notrunc status=none
              truncate -s 100000 new/sparse; chmod 640 new/sparse; touch -d @1000000000.5 new/sparse
              mkfifo new/fifo
              rm old/deep/other; rmdir old/deep
              dd if=/dev/urandom of=new/large bs=1M count=20 conv=fsync status=none
              """)
          .expect(0);
      assertThat(read(mount.mountpoint().resolve("old/file"))).isEqualTo("as Xt was\n");
      drain(mount);
      assertSourceEquals(mount);
      assertThat(source.resolve("old/deep")).doesNotExist();
      assertThat(mount.status().number("outputs.waitingChanges")).isZero();
      assertThat(mount.status().number("outputs.drainedBytes")).isGreaterThan(20 << 20);
      shell(mount, "echo last >new/last").expect(0);
      pmfs.run("umount", mount.mountpoint().toString()).expect(0);
      mount.ended();
    }

    assertThat(read(source.resolve("new/last"))).isEqualTo("last\n");
    assertThat(marks()).isEmpty();
    try (MountedPmfs again = mount()) {
      assertSourceEquals(again);
    }
  }

  /** As rsync, tar and cp do. */
  @Test
  void extendedAttribute_ofANewFileThatIsOpen_isAtTheSource() {
    String program =
        """
        import os, sys
        file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY, 0o600)
        os.setxattr(file, "user.key", b"value")
        os.write(file, b"content")
        os.fchmod(file, 0o444)
        os.close(file)
        """;
    try (MountedPmfs mount = mount()) {
      Command.run("python3", "-c", program, mount.path("file")).expect(0);
      drain(mount);
      assertThat(Posix.xattr(source.resolve("file").toString(), "user.key"))
          .isEqualTo("value".getBytes(UTF_8));
      assertSourceEquals(mount);
    }
  }

  /** Newer kernels write it without their page cache, and must drop what the reader has mapped. */
  @Test
  void life_ofAFileThatAnotherProcessMaps_isSeenAtOnce() {
    String program =
        """
        import mmap, os, struct, sys
        records, last = 64, 20_000
        file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(file, bytes(8 * records))
        written = mmap.mmap(-1, 8)
        reader = os.fork()
        if reader == 0:
            with open(sys.argv[1], "rb") as opened:
                mapped = mmap.mmap(opened.fileno(), 8 * records, access=mmap.ACCESS_READ)
            seen = 0
            while seen < last:
                seen = struct.unpack("=q", written)[0]
                found = struct.unpack_from("=q", mapped, seen % records * 8)[0]
                if found < seen:
                    print(f"record {found} where {seen} was written")
                    os._exit(1)
            os._exit(0)
        for number in range(1, last + 1):
            record = struct.pack("=q", number)
            os.pwrite(file, record, number % records * 8)
            written[:] = record
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1]))
        """;
    try (MountedPmfs mount = mount()) {
      Path file = mount.mountpoint().resolve("mapped");
      Command.run("python3", "-c", program, file.toString()).expect(0);
    }
  }

  private List<Path> marks() {
    return Installation.files(pmfs.tier()).stream()
        .filter(file -> file.endsWith("not-at-the-source"))
        .toList();
  }

  @Test
  @OnRequest("cases")
  void tree_ofManyFiles_isTheSameAtTheSource() {
    Path programs = Path.of("/usr/include/linux");
    try (MountedPmfs mount = mount()) {
      shell(mount, "cp -a " + programs + " copy; tar -cf - -C " + programs + " . | tar -xf - -C .")
          .expect(0);
      drain(mount);
      assertSourceEquals(mount);
      Command.run("diff", "-r", programs.toString(), source.resolve("copy").toString()).expect(0);
    }
  }

  @Test
  void kill_whileAProgramWrites_losesNothing() throws Exception {
    try (MountedPmfs mount = mount()) {
      long first = mount.pid();
      Process writer =
          new ProcessBuilder(
                  "sh",
                  "-euc",
                  "cd -- \"$1\"; i=0; while [ $i -lt 300 ]; do mkdir d$i; echo $i >d$i/new;"
                      + " mv d$i/new d$i/file; ln d$i/file d$i/link; i=$((i + 1)); done",
                  "-",
                  mount.mountpoint().toString())
              .redirectErrorStream(true)
              .redirectOutput(pmfs.scratch().root().resolve("writer").toFile())
              .start();
      Await.until(
          "the program writes", SOON, () -> Files.exists(mount.mountpoint().resolve("d20/link")));
      mount.killDaemon();
      mount.awaitSuccessor(first);
      assertThat(writer.waitFor()).as(read(pmfs.scratch().root().resolve("writer"))).isZero();
      for (int i = 0; i < 300; i++) {
        assertThat(read(mount.mountpoint().resolve("d" + i + "/link"))).isEqualTo(i + "\n");
      }
      drain(mount);
      assertSourceEquals(mount);
      assertThat(mount.status().number("outputs.conflicts")).isZero();
    }
  }

  @Test
  void upgrade_whileAFileIsOpen_changesNothingForItsWriter() throws Exception {
    try (MountedPmfs mount = mount()) {
      Process writer =
          new ProcessBuilder(
                  "sh",
                  "-euc",
                  "exec 3>\"$1/log\"; echo before >&3; read -r go; echo after >&3; exec 3>&-",
                  "-",
                  mount.mountpoint().toString())
              .start();
      Await.until("it writes", SOON, () -> Files.exists(mount.mountpoint().resolve("log")));
      pmfs.run("upgrade", mount.mountpoint().toString()).expect(0);
      writer.getOutputStream().write("go\n".getBytes(UTF_8));
      writer.getOutputStream().flush();
      assertThat(writer.waitFor()).isZero();
      assertThat(read(mount.mountpoint().resolve("log"))).isEqualTo("before\nafter\n");
      drain(mount);
      assertSourceEquals(mount);
    }
  }

  @Test
  @OnRequest("cases")
  void conflict_withAnotherProgram_keepsBoth() throws Exception {
    try (MountedPmfs mount = mount("--drain-rate", "1M")) {
      // Something large goes first, so that there is time to be another program.
      shell(mount, "head -c 6M /dev/urandom >large; echo mine >>old/file").expect(0);
      Files.writeString(source.resolve("old/file"), "another program's\n");
      Command drained = pmfs.run("drain", mount.mountpoint().toString());

      drained.expect(4);
      assertThat(drained.out() + drained.err()).contains("old/file");
      assertThat(read(source.resolve("old/file"))).isEqualTo("another program's\n");
      List<Path> kept =
          Installation.files(source).stream()
              .filter(file -> file.getFileName().toString().contains(".pmfs-conflict-"))
              .toList();
      assertThat(kept).hasSize(1);
      assertThat(read(kept.get(0))).isEqualTo("as it was\nmine\n");
      assertThat(mount.status().number("outputs.conflicts")).isEqualTo(1);

      Command known = pmfs.run("drain", "--acknowledge", mount.mountpoint().toString());
      known.expect(0);
      assertThat(known.out()).contains("old/file", "all is at the source");
      assertThat(mount.status().number("outputs.conflicts")).isZero();
      drain(mount);
    }
  }

  @Test
  @OnRequest("cases")
  void refusal_ofAFullSource_isToldAndOver() {
    source = pmfs.scratch().tmpfs("full", "size=8m");
    try (MountedPmfs mount = mount()) {
      String point = mount.mountpoint().toString();
      shell(mount, "head -c 20M /dev/urandom >large; echo small >small").expect(0);
      Command drained = pmfs.run("drain", "--timeout", "5s", point);
      drained.expect(4);
      assertThat(drained.out() + drained.err()).contains("large");
      pmfs.run("status", point).expect(4);

      Command umount = pmfs.run("umount", "--timeout", "3s", point);
      umount.expect(4);
      assertThat(umount.err()).contains("still mounted");
      assertThat(Mounts.at(mount.mountpoint())).isTrue();

      Command.run("mount", "-o", "remount,size=64m", source.toString()).expect(0);
      pmfs.run("drain", "--timeout", "60s", point).expect(0);
      assertSourceEquals(mount);
      pmfs.run("status", point).expect(0);
    }
  }

  @Test
  @OnRequest("cases")
  void state_thatCannotBeWritten_refusesChangesAndLosesNoFile() {
    Path state = pmfs.scratch().tmpfs("state", "size=48m");
    try (MountedPmfs mount = mount("--state-dir", state.toString())) {
      Command written =
          shell(
              mount,
              """
              mkfifo %1$s/go; echo before >before
              { echo open; read -r go <%1$s/go; } >open &
              until test -s open; do sleep 0.1; done
              dd if=/dev/zero of=%1$s/fill bs=1M status=none || true
              python3 -c 'import os; [os.mkdir("d" + str(i)) for i in range(50000)]' || true
              echo >%1$s/go; wait
              cat before open
              """
                  .formatted(state));
      written.expect(0);
      assertThat(written.out()).isEqualTo("before\nopen\n");
      assertThat(written.err()).contains("Input/output error");
      Command status = pmfs.run("status", mount.mountpoint().toString());
      status.expect(4);
      assertThat(status.err()).contains("the state is not recorded", "No space left");
      assertThat(status.out() + status.err()).doesNotContain("refused by the source");

      Command.run("rm", state.resolve("fill").toString()).expect(0);
      pmfs.run("umount", mount.mountpoint().toString()).expect(0);
      mount.ended();
    }
    assertThat(read(source.resolve("open"))).isEqualTo("open\n");
  }

  @Test
  void left_byAnEndedMount_isFinishedLater() {
    source = pmfs.scratch().tmpfs("left", "size=8m");
    MountedPmfs mount = mount();
    String point = mount.mountpoint().toString();
    shell(mount, "head -c 20M /dev/urandom >large; sha256sum large >sum").expect(0);
    Command umount = pmfs.run("umount", "--no-drain", point);
    umount.expect(4);
    assertThat(umount.err()).contains("not at the source");
    mount.ended();
    assertThat(Mounts.at(mount.mountpoint())).isFalse();

    assertThat(marks()).isNotEmpty();
    String tier = "ssd:" + pmfs.tier();
    Command purge = pmfs.run("cache", "--tier", tier, "--purge", "--all");
    purge.expect(0);
    assertThat(purge.out()).contains("kept", "not at the source");
    pmfs.run("cache", "--tier", tier, "--purge", source.toString()).expect(4);
    Path mark = marks().stream().filter(one -> one.startsWith(pmfs.state())).findFirst().get();
    Path state = mark.resolveSibling(".").normalize();

    Command.run("mount", "-o", "remount,size=64m", source.toString()).expect(0);
    pmfs.run("drain", "--state", state.toString()).expect(0);
    Command.run("sh", "-euc", "cd -- \"$1\" && sha256sum -c sum", "-", source.toString()).expect(0);
    assertThat(marks()).isEmpty();
    pmfs.run("cache", "--tier", tier, "--purge", "--all").expect(0);
    assertThat(state).doesNotExist();
  }

  @Test
  @OnRequest("cases")
  void left_byAnEndedMount_isShownByTheNextOne() {
    source = pmfs.scratch().tmpfs("left", "size=8m");
    MountedPmfs mount = mount();
    shell(mount, "head -c 20M /dev/urandom >large; sha256sum large >sum").expect(0);
    pmfs.run("umount", "--no-drain", mount.mountpoint().toString()).expect(4);
    mount.ended();
    Command.run("mount", "-o", "remount,size=64m", source.toString()).expect(0);

    try (MountedPmfs again = mount()) {
      shell(again, "sha256sum -c sum").expect(0);
      drain(again);
      assertSourceEquals(again);
    }
  }

  @Test
  void fsync_thatMeansTheSource_returnsWhenItHasTheFile() throws Exception {
    try (MountedPmfs mount = mount("--fsync", "source")) {
      shell(mount, "dd if=/dev/urandom of=synced bs=1M count=30 conv=fsync status=none").expect(0);
      assertThat(source.resolve("synced"))
          .hasSameBinaryContentAs(mount.mountpoint().resolve("synced"));
    }
  }

  @Test
  @OnRequest("cases")
  void fsync_atAFullSource_fails() {
    source = pmfs.scratch().tmpfs("full", "size=8m");
    try (MountedPmfs mount = mount("--fsync", "source")) {
      Command written =
          shell(mount, "dd if=/dev/zero of=large bs=1M count=20 conv=fsync status=none");
      assertThat(written.exit()).isNotZero();
      assertThat(written.err()).contains("No space left on device");
      Command.run("mount", "-o", "remount,size=64m", source.toString()).expect(0);
    }
  }

  @Test
  void rights_ofAnUnprivilegedWriter_areThoseOfTheModes() throws Exception {
    Command.run("chmod", "755", source.toString()).expect(0);
    Command.run("mkdir", "-m", "1777", source.resolve("public").toString()).expect(0);
    Command.run("mkdir", "-m", "750", source.resolve("private").toString()).expect(0);
    try (MountedPmfs mount = mount()) {
      OtherUser.run("sh", "-c", "echo x >" + mount.path("public/file")).expect(0);
      OtherUser.run("sh", "-c", "umask 077; mkdir " + mount.path("public/directory")).expect(0);
      assertThat(OtherUser.run("touch", mount.path("private/file")).exit()).isNotZero();
      assertThat(OtherUser.run("touch", mount.path("file")).exit()).isNotZero();
      shell(mount, "echo root >public/roots").expect(0);
      assertThat(OtherUser.run("rm", "-f", mount.path("public/roots")).exit()).isNotZero();
      drain(mount);
      assertSourceEquals(mount);
    }
    assertThat(Files.getAttribute(source.resolve("public/file"), "unix:uid")).isEqualTo(65534);
    assertThat(Posix.stat(source.resolve("public/directory").toString()).permissions())
        .isEqualTo(0700);
  }

  /** What a thread needs while it acts as that user was loaded before. */
  @Test
  @OnRequest("cases")
  void changes_ofAUserWhoCannotReachTheProgram_reachTheSource() throws Exception {
    try (Scratch code = new Scratch()) {
      Path launcher = Installation.launcherForAll(code);
      Path libraries = launcher.resolveSibling("../cli/target/pmfs/lib").normalize();
      String classes = unpackedClassPath(libraries, code.directory("classes"));
      Command.run("chmod", "0700", code.root().toString()).expect(0);
      assertThat(OtherUser.run("ls", launcher.toString()).exit()).isNotZero();
      try (Installation closed = new Installation(launcher, List.of())) {
        // Each class is opened when it is needed, in a file of its own.
        closed.environment(
            "PMFS_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -Xshare:off -cp " + classes);
        Path owned = closed.directory("owned");
        Command.run("chown", "65534:65534", owned.toString()).expect(0);
        try (MountedPmfs mount = closed.mount(owned, "--writable", "--allow-other")) {
          for (String script :
              List.of(
                  """
                  mkdir d d/gone; echo one >d/f; ln d/f d/hard; ln -s f d/link; mkfifo d/fifo
                  head -c 3M /dev/urandom >d/large; truncate -s 5000 d/sparse; echo x >d/old
                  """,
                  """
                  mv d/f d/g; rm d/hard; rmdir d/gone; chmod 640 d/g; touch -d @1000000000 d/large
                  echo two >>d/g; mv d/old d/link; truncate -s 10 d/sparse; mv d e
                  """)) {
            OtherUser.run("sh", "-euc", "cd -- \"$1\"; " + script, "-", mount.path("")).expect(0);
            closed.run("drain", mount.mountpoint().toString()).expect(0);
            WholeTree.assertSourceEquals(owned, mount);
          }
          assertThat(Files.getAttribute(owned.resolve("e/large"), "unix:uid")).isEqualTo(65534);
          assertThat(mount.status().number("outputs.conflicts")).isZero();
          assertThat(mount.status().text("threadFailure")).isEmpty();
        }
      }
    }
  }

  /** With the classes for system calls in a directory, and those of other libraries in jars. */
  private static String unpackedClassPath(Path libraries, Path directory) throws IOException {
    List<String> path = new ArrayList<>(List.of(directory.toString()));
    try (var jars = Files.newDirectoryStream(libraries, "*.jar")) {
      for (Path jar : jars) {
        if (jar.getFileName().toString().matches("(fuse-mount|writable|jnr|jffi|asm).*")) {
          unpack(jar, directory);
        } else {
          path.add(jar.toString());
        }
      }
    }
    return String.join(":", path);
  }

  private static void unpack(Path jar, Path directory) throws IOException {
    try (FileSystem content = FileSystems.newFileSystem(jar);
        var files = Files.walk(content.getPath("/"))) {
      for (Path file : (Iterable<Path>) files::iterator) {
        Path copy = directory.resolve(file.toString().substring(1));
        if (Files.isDirectory(file)) {
          Files.createDirectories(copy);
        } else if (!Files.exists(copy)) {
          Files.copy(file, copy);
        }
      }
    }
  }

  @Test
  @OnRequest("cases")
  void kill_byASignal_keepsWhatIsLeft() {
    MountedPmfs mount = mount("--drain-rate", "1M");
    shell(mount, "head -c 60M /dev/urandom >large; sha256sum large >sum").expect(0);
    mount.signal("TERM");
    mount.awaitGone();
    mount.ended();
    assertThat(Files.exists(source.resolve("sum"))).isFalse();

    try (MountedPmfs again = mount()) {
      shell(again, "sha256sum -c sum").expect(0);
    }
    Command.run("sh", "-euc", "cd -- \"$1\" && sha256sum -c sum", "-", source.toString()).expect(0);
  }
}
