package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the source refuses keeps nothing else back, and the user gets out of it. */
final class RefusalIT {
  private static final Duration SOON = Duration.ofSeconds(30);

  @Installed(byRoot = true)
  private Installation pmfs;

  private Path source;

  @BeforeEach
  void makeSource() throws IOException {
    source = pmfs.directory("source");
    Files.writeString(source.resolve("log"), "as it was\n");
    Files.createDirectory(source.resolve("closed"));
    Files.createDirectory(source.resolve("sticky"));
  }

  @AfterEach
  void allowAll() {
    Command.run("chattr", "-R", "-ia", source.toString());
  }

  private MountedPmfs mount() {
    return pmfs.mount(source, "--writable", "--allow-other");
  }

  private static Command shell(MountedPmfs mount, String script) {
    return Command.run("sh", "-euc", "cd -- \"$1\"; " + script, "-", mount.mountpoint().toString());
  }

  private Command drain(MountedPmfs mount, String... options) {
    String[] all = new String[options.length + 2];
    all[0] = "drain";
    System.arraycopy(options, 0, all, 1, options.length);
    all[all.length - 1] = mount.mountpoint().toString();
    return pmfs.run(all);
  }

  @Test
  void immutableFiles_holdNothingElseBack_andHaveThreeWaysOut() throws IOException {
    try (MountedPmfs mount = mount()) {
      // The mount has just looked, and learns later what the source forbids now.
      String protect = "chattr +i " + source;
      shell(
              mount,
              "exec 3>log; "
                  + protect
                  + "/log; echo more >&3; exec 3>&-;"
                  + " until stat closed >/dev/null && "
                  + protect
                  + "/closed && mkdir -m 700 closed/d; do chattr -i "
                  + source
                  + "/closed; sleep 1; done;"
                  + " echo data >closed/d/file; echo free >free")
          .expect(0);
      Await.until("the free file", SOON, () -> Files.exists(source.resolve("free")));
      Command refused = drain(mount);
      refused.expect(4);
      assertThat(refused.out())
          .contains("log: the source answers: operation not permitted")
          .contains("closed/d: the source answers: operation not permitted; 2 changes wait for it")
          .contains("set aside: pmfs drain --retry, --export or --drop");
      // Each fsync says so, not only the first.
      assertThat(shell(mount, "sync log").exit()).isNotZero();
      assertThat(shell(mount, "sync log").exit()).isNotZero();

      Path rescued = pmfs.directory("rescued");
      drain(mount, "--export", "closed/d", rescued.toString()).expect(0);
      assertThat(rescued.resolve("d/file")).hasContent("data\n");
      assertThat(Command.run("stat", "-c", "%a", rescued + "/d").out()).isEqualTo("700\n");
      Command dropped = drain(mount, "--drop", mount.mountpoint() + "/closed");
      dropped.expect(4);
      assertThat(dropped.out()).contains("closed/d\n").contains("closed/d/file\n");
      assertThat(mount.mountpoint().resolve("closed")).isEmptyDirectory();
      assertThat(mount.mountpoint().resolve("log")).hasContent("more\n");

      // What was set aside outlives the mount.
      pmfs.run("umount", "--no-drain", mount.mountpoint().toString()).expect(4);
      mount.ended();
    }
    try (MountedPmfs again = mount()) {
      assertThat(again.mountpoint().resolve("log")).hasContent("more\n");
      drain(again).expect(4);
      Command.run("chattr", "-i", source + "/log").expect(0);
      drain(again, "--retry", "log").expect(0);
      assertThat(source.resolve("log")).hasContent("more\n");
    }
  }

  @Test
  @OnRequest("cases")
  void immutableFiles_areToldAtTheCall() throws IOException {
    Command.run("chattr", "+i", source + "/log", source + "/closed").expect(0);
    Command.run("chattr", "+a", source + "/sticky").expect(0);
    try (MountedPmfs mount = mount()) {
      for (String call : List.of("echo x >log", "rm log", "chmod 600 log", "mkdir closed/d")) {
        Command refused = shell(mount, call);
        assertThat(refused.exit()).isNotZero();
        assertThat(refused.err()).contains("Operation not permitted");
      }
      shell(mount, "echo x >sticky/new; ! rm sticky/new; echo free >free").expect(0);
      drain(mount).expect(0);
      assertThat(source.resolve("log")).hasContent("as it was\n");
      assertThat(source.resolve("sticky/new")).hasContent("x\n");
      Command.run("chattr", "-i", source + "/log").expect(0);
      Await.until("the file to be free", SOON, () -> shell(mount, "echo y >log").exit() == 0);
      drain(mount).expect(0);
      assertThat(source.resolve("log")).hasContent("y\n");
    }
  }

  /** A rename into a tree of another project quota fails at the source: mv copies then. */
  @Test
  void renameToAnotherProject_isSaidAtOnce() throws IOException {
    Machine.requireCommand("mkfs.xfs");
    Path image = pmfs.directory("image").resolve("xfs");
    Command.run("truncate", "-s", "400M", image.toString()).expect(0);
    Command.run("mkfs.xfs", "-q", image.toString()).expect(0);
    Path other = source.resolve("closed");
    Command.run("mount", "-o", "loop", image.toString(), other.toString()).expect(0);
    try (MountedPmfs mount = pmfs.mount(other, "--writable", "--allow-other")) {
      Files.createDirectory(other.resolve("a"));
      Files.createDirectory(other.resolve("b"));
      Command.run("chattr", "-p", "1", "+P", other + "/a").expect(0);
      Command.run("chattr", "-p", "2", "+P", other + "/b").expect(0);
      shell(mount, "mkdir a/d; echo x >a/d/f; mv a/d a/e").expect(0);
      drain(mount).expect(0);
      Command rename = shell(mount, "python3 -c 'import os; os.rename(\"a/e\", \"b/e\")'");
      assertThat(rename.err()).contains("Invalid cross-device link");
      shell(mount, "mv a/e b/").expect(0);
      drain(mount).expect(0);
      assertThat(other.resolve("b/e/f")).hasContent("x\n");
      assertThat(other.resolve("a")).isEmptyDirectory();
      pmfs.run("umount", mount.mountpoint().toString()).expect(0);
      mount.ended();
    } finally {
      Command.run("umount", other.toString()).expect(0);
    }
  }

  /** The owner of a file in a sticky directory removes it, after root gave it away. */
  @Test
  @OnRequest("cases")
  void fileInAStickyDirectory_thatItsNewOwnerRemoves_goes() {
    Command.run("chmod", "1777", source + "/sticky").expect(0);
    try (MountedPmfs mount = mount()) {
      shell(mount, "echo x >sticky/f").expect(0);
      drain(mount).expect(0);
      shell(
              mount,
              "chown 54321 sticky/f; setpriv --reuid 54321 --regid 54321 --clear-groups"
                  + " rm sticky/f; echo after >after")
          .expect(0);
      drain(mount).expect(0);
      assertThat(source.resolve("sticky/f")).doesNotExist();
      assertThat(source.resolve("after")).hasContent("after\n");
    }
  }

  /** Groups of a process that are not those of its user: the kernel of the mount knows them. */
  @Test
  @OnRequest("cases")
  void writerWithAGroupThatIsInNoFile_writes() {
    Command.run("chgrp", "54399", source + "/sticky").expect(0);
    Command.run("chmod", "770", source + "/sticky").expect(0);
    try (MountedPmfs mount = mount()) {
      shell(
              mount,
              "setpriv --reuid 54321 --regid 54321 --groups 54399 sh -c 'echo x >sticky/g';"
                  + " echo after >after")
          .expect(0);
      drain(mount).expect(0);
      assertThat(source.resolve("sticky/g")).hasContent("x\n");
      assertThat(Command.run("stat", "-c", "%u:%g", source + "/sticky/g").out())
          .isEqualTo("54321:54321\n");
    }
  }

  @Test
  @OnRequest("cases")
  void fullSource_isFreedByRemovals() throws IOException {
    source = pmfs.scratch().tmpfs("full", "size=40m");
    Command.run("sh", "-c", "head -c 30M /dev/urandom >" + source + "/old").expect(0);
    try (MountedPmfs mount = mount()) {
      shell(mount, "head -c 35M /dev/urandom >new; echo small >small").expect(0);
      Await.until("the small file", SOON, () -> Files.exists(source.resolve("small")));
      drain(mount).expect(4);
      assertThat(Command.run("sh", "-c", "ls -A " + source).out()).doesNotContain(".pmfs-tmp");
      shell(mount, "rm old").expect(0);
      drain(mount, "--timeout", "60s").expect(0);
      Command.run("cmp", source + "/new", mount.mountpoint() + "/new").expect(0);
    }
  }

  @Test
  @OnRequest("cases")
  void renameToAnotherFileSystemOfTheSource_isSaidAtOnce() {
    Path other = source.resolve("closed");
    Command.run("mount", "-t", "tmpfs", "tmpfs", other.toString()).expect(0);
    try (MountedPmfs mount = mount()) {
      shell(mount, "mv log closed/; ln -s x closed/link").expect(0);
      drain(mount).expect(0);
      assertThat(other.resolve("log")).hasContent("as it was\n");
      assertThat(source.resolve("log")).doesNotExist();
      assertThat(shell(mount, "ln closed/log hard").exit()).isNotZero();
      pmfs.run("umount", mount.mountpoint().toString()).expect(0);
      mount.ended();
    } finally {
      Command.run("umount", other.toString()).expect(0);
    }
  }
}
