package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Errno;
import io.pmfs.posix.OnRequest;
import io.pmfs.source.FaultyStore.Operation;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Whom the source lets read by its POSIX access-control lists, the mount lets read, and nobody
 * else. Each file is read as each of several users, directly and through the mount.
 */
final class AccessListIT {
  @Installed(byRoot = true)
  private Installation pmfs;

  private Path source;

  private static final String STRANGER = "61000:61000";
  private static final String NAMED_USER = "61001:61001";

  // In no list; in one; in one, and of a group in one; of the owning group; of both groups.
  private static final Map<String, String> USERS =
      Map.of(
          "stranger", STRANGER,
          "named", NAMED_USER,
          "owner", "61005:61005",
          "of the named group", "61002:62002",
          "of the owning group", "61003:62001",
          "named, of the owning group", "61001:62001",
          "of both groups", "61004:62001,62002");

  private static final String NAMED = "u:61001:";
  private static final String GROUP = "g:62002:";

  /** Not one of root's home, which others may not run. */
  private static final String PYTHON = "/usr/bin/python3";

  private final List<String> cases = new ArrayList<>();

  @BeforeEach
  void makeTree() throws IOException {
    Machine.requireCommand("setpriv");
    Machine.requireCommand("python3");
    source = pmfs.directory("source");
    chmod(source, 0755);
    file("no-list-0644", 0644);
    file("no-list-0640", 0640);
    file("no-list-0604", 0604);
    listed("named-user", "u::rw " + NAMED + "r g::- m::r o::-");
    listed("named-group", "u::rw g::- " + GROUP + "r m::r o::-");
    listed("denied-user", "u::rw " + NAMED + "- g::r m::r o::r");
    listed("denied-group", "u::rw g::r " + GROUP + "- m::r o::r");
    listed("group-below-mask", "u::rw " + NAMED + "r g::- m::rw o::-");
    listed("mask-takes-all", "u::rw " + NAMED + "r g::r m::w o::-");
    listed("mask-without-bits", "u::rw " + NAMED + "r g::r m::- o::r");
    listed("two-groups", "u::rw g::- " + GROUP + "r m::r o::-");
    listed("owner-has-less", "u::- " + NAMED + "r g::r m::r o::r");
    directory("open-to-named", "u::rwx " + NAMED + "rx g::- m::rx o::-");
    directory("closed-to-named", "u::rwx " + NAMED + "r g::rx m::rx o::rx");
    directory("closed-to-owning-group", "u::rwx g::r " + GROUP + "rx m::rx o::rx");
    Path byDefault = source.resolve("default-only");
    Files.createDirectory(byDefault);
    own(byDefault, 0755);
    AccessList.setDefault(byDefault, "u::rwx " + NAMED + "- g::- m::- o::-");
    file("default-only/f", 0644);
    AccessList.set(source.resolve("default-only/f"), "u::rw g::r o::r");
  }

  private Path file(String name, int mode) throws IOException {
    Path file = source.resolve(name);
    Files.writeString(file, name);
    own(file, mode);
    cases.add(name);
    return file;
  }

  private void listed(String name, String list) throws IOException {
    AccessList.set(file(name, 0644), list);
  }

  private void directory(String name, String list) throws IOException {
    Path directory = Files.createDirectory(source.resolve(name));
    own(directory, 0755);
    file(name + "/f", 0644);
    AccessList.set(directory, list);
  }

  private static void own(Path path, int mode) {
    Command.run("chown", "61005:62001", path.toString()).expect(0);
    chmod(path, mode);
  }

  private static void chmod(Path path, int mode) {
    Posix.check(Posix.result(Posix.LIBC.chmod(Posix.c(path.toString()), mode)));
  }

  private static void listOf(Path root) {
    AccessList.set(root, "u::rwx " + NAMED + "rx g::rx m::rx o::rx");
  }

  /** Which files each user can read below a directory. */
  private Map<String, List<String>> readable(Path root) {
    Map<String, List<String>> readable = new LinkedHashMap<>();
    USERS.forEach(
        (who, ids) ->
            readable.put(who, as(ids, "cd " + root + " && for f; do cat $f && echo; done")));
    return readable;
  }

  private List<String> as(String ids, String script) {
    String[] parts = ids.split("[:,]", -1);
    List<String> line = new ArrayList<>(OtherUser.prefix(parts[0], parts[1]));
    if (parts.length > 2) {
      line.set(line.size() - 1, "--groups=" + parts[2]);
    }
    line.addAll(List.of("sh", "-c", script, "sh"));
    line.addAll(cases);
    return Command.run(line.toArray(String[]::new)).out().lines().toList();
  }

  private void assertExact(MountedPmfs mount) {
    assertThat(readable(mount.mountpoint())).isEqualTo(readable(source));
  }

  private void assertNoMore(MountedPmfs mount) {
    Map<String, List<String>> direct = readable(source);
    readable(mount.mountpoint())
        .forEach((who, files) -> assertThat(direct.get(who)).as(who).containsAll(files));
  }

  @Test
  void sourceWithList_isReadByWhomItLetsRead() {
    listOf(source);
    try (MountedPmfs mount = pmfs.mount(source, "--allow-other")) {
      assertExact(mount);
      assertThat(readable(source).get("named")).contains("named-user", "open-to-named/f");
      assertThat(readable(source).get("named")).doesNotContain("denied-user", "closed-to-named/f");
    }
  }

  @Test
  void listsBelowRoot_areFoundInTheFirstMount_andExactInTheSecond() {
    try (MountedPmfs mount = pmfs.mount(source, "--allow-other")) {
      assertNoMore(mount);
      assertThat(readable(mount.mountpoint()).get("stranger"))
          .contains("no-list-0644", "no-list-0604", "default-only/f");
    }
    try (MountedPmfs mount = pmfs.mount(source, "--allow-other")) {
      assertExact(mount);
    }
  }

  @Test
  void libfuse_letsNobodyReadMore() {
    listOf(source);
    try (MountedPmfs mount = BridgeMode.JNR.mount(pmfs, source, "--allow-other")) {
      assertNoMore(mount);
      assertThat(readable(mount.mountpoint()).get("stranger")).contains("no-list-0644");
    }
  }

  @Test
  @OnRequest("cases")
  void writable_isReadByWhomTheSourceLetsRead_alsoAfterChmod() {
    try (MountedPmfs mount = pmfs.mount(source, "--writable", "--allow-other")) {
      assertExact(mount);
      Path file = mount.mountpoint().resolve("named-user");
      chmod(file, 0600);
      assertThat(as(NAMED_USER, "cat " + file)).isEmpty();
      chmod(file, 0640);
      assertThat(as(NAMED_USER, "cat " + file)).containsExactly("named-user");
      assertThat(as(STRANGER, "cat " + file)).isEmpty();
      pmfs.run("drain", mount.mountpoint().toString()).expect(0);
      assertExact(mount);
      assertThat(Posix.setxattr(file.toString(), "system.posix_acl_access", new byte[4]))
          .isNegative();
    }
  }

  /** New content is a new file at the source, also in a directory with a list for new files. */
  @Test
  @OnRequest("cases")
  void writable_filesAreRewritten_isReadByWhomTheSourceLetRead() throws IOException {
    Map<String, List<String>> before = readable(source);
    Object number = Files.getAttribute(source.resolve("named-user"), "unix:ino");
    try (MountedPmfs mount = pmfs.mount(source, "--writable", "--allow-other")) {
      for (String name : cases) {
        Files.writeString(mount.mountpoint().resolve(name), name);
      }
      pmfs.run("drain", mount.mountpoint().toString()).expect(0);
      assertThat(Files.getAttribute(source.resolve("named-user"), "unix:ino")).isNotEqualTo(number);
      assertThat(readable(source)).isEqualTo(before);
      assertExact(mount);
    }
  }

  @Test
  void daemonKilled_itsSuccessorGoesOnTheSameWay() {
    listOf(source);
    try (MountedPmfs mount = pmfs.mount(source, "--allow-other")) {
      kill(mount);
      assertExact(mount);
    }
  }

  @Test
  @OnRequest("cases")
  void daemonKilledAfterItFoundLists_itsSuccessorStillLetsNobodyReadMore() {
    try (MountedPmfs mount = pmfs.mount(source, "--allow-other")) {
      assertThat(as(NAMED_USER, "ls -lR " + mount.mountpoint())).isNotEmpty();
      kill(mount);
      assertNoMore(mount);
    }
  }

  private static void kill(MountedPmfs mount) {
    long pid = mount.pid();
    Command.run("kill", "-KILL", Long.toString(pid)).expect(0);
    mount.awaitSuccessor(pid);
  }

  @Test
  void listChangedBetweenMounts_isNoticed() {
    listOf(source);
    Path file = source.resolve("named-user");
    try (MountedPmfs mount = pmfs.mount(source, "--allow-other")) {
      assertThat(readable(mount.mountpoint()).get("named")).contains("named-user");
    }
    AccessList.set(file, "u::rw " + NAMED + "- g::r m::r o::-");
    try (MountedPmfs mount = pmfs.mount(source, "--allow-other")) {
      assertThat(readable(mount.mountpoint()).get("named")).doesNotContain("named-user");
      assertExact(mount);
    }
  }

  @Test
  void sourceFailsToGiveAList_nobodyIsLetIn() throws IOException {
    for (boolean isAtRoot : List.of(false, true)) {
      if (isAtRoot) {
        listOf(source);
      }
      try (Scratch scratch = new Scratch();
          OwnMount mount = OwnMount.forOthers(scratch, source)) {
        mount.source().on(Operation.ACCESS).of("no-list-0644").fail(Errno.EIO);
        String file = mount.path("no-list-0644").toString();
        assertThat(as(STRANGER, "cat " + file)).isEmpty();
        mount.source().clearFaults();
        assertThat(as(STRANGER, "cat " + file)).containsExactly("no-list-0644");
      }
    }
  }

  @Test
  void anotherFileAtThePath_doesNotDecide() throws IOException {
    listOf(source);
    try (Scratch scratch = new Scratch();
        OwnMount mount = OwnMount.forOthers(scratch, source)) {
      String file = mount.path("denied-user").toString();
      assertThat(mount.inode("denied-user")).isPositive();
      Files.move(source.resolve("denied-user"), source.resolve("elsewhere"));
      file("denied-user", 0644);
      assertThat(as(NAMED_USER, "cat " + file)).isEmpty();
    }
  }

  @Test
  void namesOfTrustedAttributes_areRootsAlone() {
    Path file = source.resolve("no-list-0644");
    Posix.check(Posix.setxattr(file.toString(), "trusted.secret", new byte[] {1}));
    Posix.check(Posix.setxattr(file.toString(), "user.plain", new byte[] {2}));
    String names =
        "import os; print(sorted(n for n in os.listxattr('%s') if n[:4] in ('trus', 'user')))";
    for (BridgeMode mode : List.of(BridgeMode.PAGE_CACHE, BridgeMode.JNR)) {
      try (MountedPmfs mount = mode.mount(pmfs, source, "--allow-other")) {
        for (String path : List.of(file.toString(), mount.path("no-list-0644"))) {
          String script = names.formatted(path);
          assertThat(Command.run(PYTHON, "-c", script).expect(0).out())
              .contains("trusted.secret", "user.plain");
          assertThat(OtherUser.run(PYTHON, "-c", script).expect(0).out().strip())
              .isEqualTo("['user.plain']");
          String value = "import os; os.getxattr('" + path + "', 'trusted.secret')";
          Command.run(PYTHON, "-c", value).expect(0);
          assertThat(OtherUser.run(PYTHON, "-c", value).err()).contains("No data available");
        }
      }
    }
  }
}
