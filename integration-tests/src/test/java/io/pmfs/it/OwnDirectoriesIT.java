package io.pmfs.it;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Requested;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Directories that other users made, or can write in: pmfs uses none of any kind. Which components
 * of a path count is the subject of {@code OwnPathTest}.
 */
final class OwnDirectoriesIT {
  private static final String NOBODY = "65534";

  private AccountBed bed;
  private Installation pmfs;
  private Account user;
  private Path launcher;
  private Path outside;

  @BeforeEach
  void install() throws IOException {
    bed = AccountBed.ofRoot();
    pmfs = bed.pmfs();
    user = bed.user();
    launcher = bed.scripts().resolve("pmfs");
    user.openFuse();
    Files.writeString(pmfs.directory("source").resolve("file"), "content");
    outside = pmfs.directory("outside");
    Files.writeString(outside.resolve("canary"), "unharmed");
    chmod(outside, "0777"); // so that pmfs could write there, whoever runs it
  }

  @AfterEach
  void remove() {
    if (bed != null) {
      bed.close();
    }
  }

  private static void chmod(Path path, String mode) {
    Command.run("chmod", mode, path.toString()).expect(0);
  }

  private static void chown(Path path, int uid) {
    Command.run("chown", "-h", Integer.toString(uid), path.toString()).expect(0);
  }

  /** Each kind of directory that pmfs uses, with the command that uses it. */
  private enum Kind {
    TIER("mount", "--tier", "ssd:DIR"),
    STATE("mount", "--state-dir", "DIR"),
    RUNTIME("PMFS_RUNTIME_DIR=DIR", "mount"),
    RUNTIME_OF_A_USER("PMFS_RUNTIME_DIR=DIR", "mount", "--user", "USER"),
    LOG("mount", "--log-file", "DIR/log"),
    ACCESS_LOG("mount", "--access-log", "DIR/requests"),
    CLUSTER_SECRET(
        "mount", "--cluster", "c", "--nodes", "localhost", "--cluster-secret-file", "DIR/secret"),
    CLUSTER_DIRECTORY("mount", "--cluster", "c", "--cluster-dir", "DIR"),
    CLUSTER_CERTIFICATES(
        "PMFS_CLUSTER_SECRET=0123456789abcdef",
        "mount",
        "--cluster",
        "c",
        "--nodes",
        "localhost",
        "--cluster-tls",
        "DIR/secret,DIR/secret,DIR/secret"),
    OUTPUTS("mount", "--writable", "--tier", "ssd:DIR"),
    POOL("mount", "--tier", "pm:DIR/new.pool:64M", "--state-dir", "OWN"),
    CONFIGURATION("mount", "--config", "DIR/pmfs.toml"),
    NODE_CACHE(
        "node-cache", "--socket", "OWN/socket", "--tier", "ssd:DIR", "--source-filesystem", "/"),
    SOCKET("node-cache", "--socket", "DIR/socket", "--tier", "ssd:OWN", "--source-filesystem", "/"),
    LEFT_OUTPUTS("drain", "--state", "DIR"),
    BUGREPORT("bugreport", "-o", "DIR/new.tar.gz");

    @SuppressWarnings("ImmutableEnumChecker") // List.of
    private final List<String> words;

    Kind(String... words) {
      this.words = List.of(words);
    }

    /** A user may share a configuration with others, and writes a report where they like. */
    boolean isOfRootAlone() {
      return this == CONFIGURATION || this == BUGREPORT || this == RUNTIME_OF_A_USER;
    }
  }

  /** What another user did to a directory. */
  private enum Attack {
    MADE_IT,
    EVERYBODY_WRITES,
    A_GROUP_WRITES,
    LINKED_IT;

    void on(Path directory, Path outside, int attacker) throws IOException {
      switch (this) {
        case MADE_IT -> chown(directory, attacker);
        case EVERYBODY_WRITES -> chmod(directory, "0777");
        case A_GROUP_WRITES -> {
          Command.run("chgrp", "65533", directory.toString()).expect(0);
          chmod(directory, "0775");
        }
        case LINKED_IT -> {
          Files.move(directory, directory.resolveSibling(directory.getFileName() + "-moved"));
          Files.createSymbolicLink(directory, outside);
          chown(directory, attacker);
        }
      }
    }
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void directory_ofAnotherUser_isRefused(Kind kind) throws IOException {
    List<Attack> attacks = List.of(Attack.values());
    int turn = List.of(Kind.values()).indexOf(kind);
    boolean isAll = Requested.is("modes");
    for (int i = 0; i < (isAll ? attacks.size() : 1); i++) {
      Attack attack = attacks.get((turn + i) % attacks.size());
      boolean isAbove = (turn + i + turn / attacks.size()) % 2 == 0;
      assertRefused(kind, attack, isAbove, 0, user.uid(), List.of());
    }
    if (kind.isOfRootAlone()) {
      return;
    }
    Attack attack = attacks.get((turn + 1) % attacks.size());
    int nobody = Integer.parseInt(NOBODY);
    if (isAll || turn % 2 == 0) {
      List<String> become = user.prefix();
      assertRefused(kind, attack, false, user.uid(), nobody, become);
    }
    if (isAll || turn % 2 == 1) {
      assertRefused(kind, attack, true, nobody, user.uid(), OtherUser.prefix(NOBODY, NOBODY));
    }
  }

  private void assertRefused(
      Kind kind, Attack attack, boolean isAbove, int uid, int attacker, List<String> become)
      throws IOException {
    String name = attack + "-" + uid;
    Path above = pmfs.directory("places").resolve(name);
    Path directory = Files.createDirectories(above.resolve("dir"));
    Path own = Files.createDirectories(pmfs.directory("own").resolve(name));
    Path mountpoint = Files.createDirectories(pmfs.directory("mounts").resolve(name));
    Path runtime = Files.createDirectories(pmfs.directory("runtimes").resolve(name));
    Path secret = Files.writeString(directory.resolve("secret"), "0123456789abcdef");
    Path configuration = Files.writeString(directory.resolve("pmfs.toml"), "");
    for (Path one : List.of(directory, own, mountpoint, runtime, secret, configuration)) {
      chown(one, uid);
      chmod(one, Files.isDirectory(one) ? "0700" : "0600");
    }
    if (kind == Kind.SOCKET) {
      chmod(directory, "0755");
    }
    Path attacked = isAbove ? above : directory;
    attack.on(attacked, outside, attacker);
    if (attack == Attack.LINKED_IT) { // what it leads to is the user's own, so only the link is not
      chown(outside, uid);
      chmod(outside, "0755");
    }
    List<String> before = listing(above);

    Command refused =
        Command.run(
            environment(kind, directory, runtime),
            Command.DEADLINE,
            line(kind, directory, own, mountpoint, become));

    assertThat(refused.exit()).as("%s, %s: %s", kind, attack, refused).isEqualTo(2);
    assertThat(refused.err().lines().filter(line -> line.startsWith("pmfs: ")))
        .as("%s, %s: %s", kind, attack, refused)
        .hasSize(1)
        .allMatch(line -> line.contains(attacked.toString()));
    assertThat(listing(above)).as("%s, %s", kind, attack).isEqualTo(before);
    assertThat(listing(outside)).hasSize(2);
    assertThat(outside.resolve("canary")).hasContent("unharmed");
    assertThat(Mounts.at(mountpoint)).isFalse();
    Command.run("rm", "-rf", above.toString(), own.toString(), runtime.toString()).expect(0);
  }

  /**
   * Who can remove it where it is not mounted ends the mount, and puts their files in its place.
   */
  @ParameterizedTest
  @EnumSource(value = Attack.class, names = "LINKED_IT", mode = EnumSource.Mode.EXCLUDE)
  void mountpoint_thatAnotherUserCanReplace_isRefused(Attack attack) throws IOException {
    Path own = pmfs.directory("own");
    chown(own, user.uid());
    chmod(own, "0700");
    Map<String, String> environment =
        Map.of("HOME", own.toString(), "PMFS_RUNTIME_DIR", own.resolve("run").toString());
    for (String name : List.of("places/inner", "places")) {
      Path mountpoint = Files.createDirectories(pmfs.directory("places").resolve("inner"));
      chown(mountpoint, user.uid());
      Path attacked = pmfs.directory(".").resolve(name).normalize();
      attack.on(attacked, outside, Integer.parseInt(NOBODY));
      chmod(mountpoint, "0777");
      String tier = "--tier=ssd:" + own.resolve("tier");
      String source = pmfs.directory("source").toString();
      String place = mountpoint.toString();
      List<List<String>> commands =
          List.of(
              List.of("mount", tier, "--keep-free=0", source, place),
              List.of(
                  "run",
                  "--private",
                  tier,
                  "--keep-free=0",
                  "--source",
                  source,
                  "--mountpoint",
                  place,
                  "--",
                  "true"));
      for (List<String> words : commands) {
        List<String> line = new ArrayList<>(user.prefix());
        line.add(launcher.toString());
        line.addAll(words);
        Command refused = Command.run(environment, Command.DEADLINE, line);
        assertThat(refused.exit()).as("%s", refused).isIn(2, 122);
        assertThat(refused.err()).contains(place + ": mount point: ", attacked + " ");
        assertThat(Mounts.at(mountpoint)).isFalse();
      }
      Command.run("rm", "-r", pmfs.directory("places").toString()).expect(0);
    }
  }

  private static List<String> listing(Path directory) throws IOException {
    try (Stream<Path> files = Files.walk(directory)) {
      return files.map(Path::toString).sorted().toList();
    }
  }

  private Map<String, String> environment(Kind kind, Path directory, Path runtime) {
    Map<String, String> environment = new HashMap<>();
    environment.put("HOME", runtime.toString());
    environment.put("PMFS_RUNTIME_DIR", runtime.toString());
    for (String word : kind.words) {
      if (word.matches("PMFS_[A-Z_]+=.*")) {
        environment.put(
            word.split("=", 2)[0], word.split("=", 2)[1].replace("DIR", directory.toString()));
      }
    }
    return environment;
  }

  private List<String> line(
      Kind kind, Path directory, Path own, Path mountpoint, List<String> become) {
    List<String> line = new ArrayList<>(become);
    line.add(launcher.toString());
    boolean isMount = false;
    for (String word : kind.words) {
      if (word.matches("PMFS_[A-Z_]+=.*")) {
        continue;
      }
      isMount |= word.equals("mount");
      line.add(
          word.replace("DIR", directory.toString())
              .replace("OWN", own.toString())
              .replace("USER", user.name()));
    }
    if (isMount) {
      if (!kind.words.contains("--tier")) {
        line.addAll(List.of("--tier", "ssd:" + own));
      }
      line.addAll(
          List.of("--keep-free", "0", pmfs.directory("source").toString(), mountpoint.toString()));
    }
    return line;
  }

  /** Root's tier in a sticky directory, where nobody has made it with links to root's files. */
  @Test
  void tier_thatNobodyMadeInAStickyDirectory_isRefusedAndItsLinksLeadNowhere() throws IOException {
    Path source = pmfs.directory("source");
    try (MountedPmfs first = pmfs.mount(source)) {
      assertThat(Path.of(first.path("file"))).hasContent("content");
    }
    String dataset;
    try (Stream<Path> names = Files.list(pmfs.tier())) {
      dataset =
          names
              .map(path -> path.getFileName().toString())
              .filter(name -> !name.equals("state"))
              .findFirst()
              .orElseThrow();
    }
    Path canary = outside.resolve("canary");
    chown(canary, 0);
    chmod(canary, "0600");
    Path shared = pmfs.directory("shared");
    chmod(shared, "1777");
    for (String place : List.of("pmfs", dataset, "state/" + dataset, "state", "pmfs/" + dataset)) {
      Command.run("find", shared.toString(), "-mindepth", "1", "-delete").expect(0);
      OtherUser.run(
              "sh",
              "-c",
              "umask 0; d=$0; mkdir -p \"$d/copies\" && cd \"$d\" && for l in source lock LOCK"
                  + " ballast not-at-the-source CURRENT settings; do ln -s \"$1\" $l || exit; done;"
                  + " ln -s \"$2\" copies/00; ln -s \"$2\" bundles",
              shared.resolve(place).toString(),
              canary.toString(),
              outside.toString())
          .expect(0);
      Path tier = place.startsWith("pmfs") ? shared.resolve("pmfs") : shared;
      Command refused =
          pmfs.run(pmfs.mountArguments(source, pmfs.mountpoint(), "--tier", "ssd:" + tier));

      assertThat(refused.exit()).as("%s: %s", place, refused).isEqualTo(2);
      assertThat(refused.err()).contains("belongs to user nobody").hasLineCount(1);
    }
    assertThat(Files.readString(canary, UTF_8)).isEqualTo("unharmed");
    assertThat(Files.getPosixFilePermissions(canary)).hasSize(2);
    assertThat(listing(outside)).hasSize(2);
  }

  @Test
  void tier_stickyDirectory_holdsPrivateDirectoriesOfEachUser() throws IOException {
    Path shared = pmfs.directory("shared");
    chmod(shared, "1777");
    OtherUser.run("mkdir", shared.resolve("other").toString()).expect(0);
    try (MountedPmfs mount = pmfs.mount(pmfs.directory("source"), "--tier", "ssd:" + shared)) {
      assertThat(Files.readString(Path.of(mount.path("file")))).isEqualTo("content");
      mount.awaitCopies(1);
    }
    try (Stream<Path> made = Files.list(shared)) {
      assertThat(made.filter(path -> !path.endsWith("other")).toList())
          .hasSize(2)
          .allSatisfy(
              path -> assertThat(Posix.stat(path.toString()).permissions()).isEqualTo(0700));
    }
  }

  @Test
  void rootWithoutHome_defaultTierThatNobodyMade_isRefused() throws IOException {
    Path places = pmfs.directory("var-tmp");
    chmod(places, "1777");
    Command made = OtherUser.run("mkdir", "-m", "777", places.resolve("pmfs-root").toString());
    made.expect(0);

    Command refused =
        pmfs.program(
            Map.of("HOME", "", "TMPDIR", ""),
            Command.DEADLINE,
            "unshare",
            "-m",
            "sh",
            "-c",
            "mount --bind \"$0\" /var/tmp && exec \"$@\"",
            places.toString(),
            launcher.toString(),
            "mount",
            pmfs.directory("source").toString(),
            pmfs.mountpoint().toString());

    assertThat(refused.exit()).as("%s", refused).isEqualTo(2);
    assertThat(refused.err())
        .contains("no local directory for a tier", "/var/tmp/pmfs-root belongs to user nobody")
        .hasLineCount(1);
    assertThat(listing(places)).hasSize(2);
  }

  @Test
  void cache_ofAStickyTier_leavesOtherUsersDatasetsAlone() throws IOException {
    Path shared = pmfs.directory("shared");
    chmod(shared, "1777");
    Path theirs = shared.resolve("set-0123456789abcdef");
    OtherUser.run(
            "sh",
            "-c",
            "mkdir -m 755 \"$0\" && : >\"$0/lock\" && ln -s /etc/hostname \"$0/source\"",
            theirs.toString())
        .expect(0);

    Command listed =
        pmfs.program(
            Map.of("PMFS_TIER", "ssd:" + shared), Command.DEADLINE, launcher.toString(), "cache");

    assertThat(listed.expect(0).out()).doesNotContain("set-0123456789abcdef");
    assertThat(theirs.resolve("lock")).exists();
  }
}
