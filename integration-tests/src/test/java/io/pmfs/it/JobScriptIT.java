package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * What {@code scripts/slurm/pmfs-job} does as root with what a user has made: links, marks and
 * processes. Without Slurm and without a mount: programs of the test stand for both.
 */
final class JobScriptIT {
  private static final Duration LONG = Duration.ofSeconds(60);

  private Scratch scratch;
  private Account user;
  private Path site;
  private Path ofUser;
  private Path tier;
  private Path base;
  private Path calls;
  private final List<Process> processes = new ArrayList<>();

  @BeforeEach
  void make() throws IOException {
    Machine.requireRoot();
    Machine.requireCommand("useradd");
    scratch = new Scratch(Path.of("/var/tmp"));
    user = new Account(scratch.directory("home").toString());
    site = scratch.directory("lustre");
    ofUser = Files.createDirectory(site.resolve("me"));
    user.own(ofUser.toString());
    tier = scratch.directory("tier");
    base = scratch.root().resolve("base");
    calls = scratch.root().resolve("calls");
    program("pmfs", "printf '%s\\n' \"$*\" >>" + calls);
    program("scontrol", "echo JobId=$4 JobState=COMPLETED X");
    Files.write(
        scratch.root().resolve("job.conf"),
        List.of(
            "BASE=" + base,
            "RUNTIME=" + scratch.root().resolve("run"),
            "PMFS=" + scratch.root().resolve("bin/pmfs"),
            "TIERS=(ssd:" + tier + ":80%)",
            "SOURCES=(" + site + ")",
            "PATH=" + scratch.root().resolve("bin") + ":/usr/sbin:/usr/bin:/sbin:/bin"));
  }

  @AfterEach
  void end() throws Exception {
    for (Process process : processes) {
      process.destroyForcibly().waitFor();
    }
    if (user != null) {
      user.run("sh", "-c", "kill -KILL -1");
      String groups = "cat \"$0\"/*/*/group | while read -r group; do rmdir \"$group\"; done";
      Command.run("sh", "-c", groups, base.toString());
      user.close();
    }
    if (scratch != null) {
      String settings = "rm -f /run/pmfs-job-$(printf %s \"$1\" | sha256sum | cut -c 1-16)";
      Command.run("sh", "-c", settings, "-", scratch.root().resolve("job.conf").toString());
      scratch.close();
    }
  }

  private void program(String name, String line) throws IOException {
    Path bin = Files.createDirectories(scratch.root().resolve("bin"));
    Path program = Files.writeString(bin.resolve(name), "#!/bin/bash\n" + line + "\n");
    Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  private void job(String number, String when, String comment) {
    job(number, when, comment, "1", "a");
  }

  private void job(String number, String when, String comment, String count, String nodes) {
    Map<String, String> environment = new HashMap<>();
    environment.put("PMFS_JOB_CONF", scratch.root().resolve("job.conf").toString());
    environment.put("SLURM_JOB_ID", number);
    environment.put("SLURM_JOB_UID", Integer.toString(user.uid()));
    environment.put("SLURM_JOB_COMMENT", comment);
    environment.put("SLURM_JOB_NUM_NODES", count);
    environment.put("SLURM_NODELIST", nodes);
    String script = Installation.launcherOfCheckout().resolveSibling("slurm/pmfs-job").toString();
    Command.run(environment, LONG, List.of(script, when)).expect(0);
  }

  private String calls() throws IOException {
    return Files.exists(calls) ? Files.readString(calls) : "";
  }

  private String problem(String number) throws IOException {
    return record(number, "problem");
  }

  private String record(String number, String name) throws IOException {
    return Files.readString(base.resolve("jobs").resolve(number).resolve(name)).strip();
  }

  @Test
  void source_linkBelowAPermittedPlace_isWhereItLeads() throws IOException {
    Path outside = scratch.directory("outside");
    Path inside = Files.createDirectory(ofUser.resolve("real"));
    Files.createSymbolicLink(ofUser.resolve("out"), outside);
    Files.createSymbolicLink(ofUser.resolve("in"), inside);

    for (String path : List.of("out", "absent", "out/../in")) {
      job("1", "prolog", "pmfs:source=" + ofUser.resolve(path));
      assertThat(problem("1")).isNotEmpty();
    }
    assertThat(calls()).isEmpty();

    job("2", "prolog", "pmfs:source=" + ofUser.resolve("in"));
    assertThat(calls()).contains(" -- " + inside + " ");
  }

  @Test
  void source_swappedWhileItIsMounted_isUnmounted() throws IOException {
    Path swapped = Files.createDirectory(ofUser.resolve("swapped"));
    Path outside = scratch.directory("outside");
    program(
        "pmfs",
        "printf '%%s\\n' \"$*\" >>%s; [ $1 != mount ] || { rmdir %s; ln -s %s %s; }"
            .formatted(calls, swapped, outside, swapped));

    job("1", "prolog", "pmfs:source=" + swapped);

    assertThat(problem("1")).contains("changed while it was mounted");
    assertThat(names(base.resolve("keys"))).isEmpty();
  }

  @Test
  void mount_thatTakesTooLong_isNamedWithItsLimit() throws IOException {
    configure("MOUNT_LIMIT=1");
    program("pmfs", "[ $1 != mount ] || sleep 20");

    job("1", "prolog", "pmfs:source=" + ofUser);

    assertThat(problem("1")).contains("not mounted: not within 1 s");
  }

  /** A pmfs that mounts memory, and unmounts only what has the named device number. */
  private void mountingPmfs() throws IOException {
    program(
        "pmfs",
        """
        printf '%%s\\n' "$*" >>%s
        case $1 in
        mount) exec mount -t tmpfs -o ro pmfs "${!#}" ;;
        status) exec mountpoint -q "${!#}" ;;
        mount-program) [ "$3" = "$(mountpoint -d "$4")" ] && exec umount "$4" ;;
        umount) exec umount "${!#}" ;;
        esac"""
            .formatted(calls));
  }

  /** A mount elsewhere whose source, which a user may choose with FUSE, is a path. */
  private Path mountNamed(Path source, String place) {
    Path directory = scratch.directory(place);
    Command.run("mount", "-t", "tmpfs", "-o", "size=1m", "" + source, "" + directory).expect(0);
    return directory;
  }

  @Test
  void mount_namedLikeAJobsMountPoint_isNotTheJobs() throws IOException {
    mountingPmfs();
    job("1", "prolog", "pmfs:source=" + ofUser);
    String key = record("1", "key");
    Path place = base.resolve("mnt").resolve(key + ".2");
    mountNamed(place, "before");

    job("2", "prolog", "pmfs:source=" + ofUser);
    assertThat(record("2", "mount")).isEqualTo(place.toString());
    assertThat(Mounts.at(place)).isTrue();

    Path after = mountNamed(place, "after");
    job("2", "epilog", "");
    assertThat(Mounts.at(place)).isFalse();
    assertThat(Mounts.at(after)).isTrue();
  }

  @Test
  void mount_namedLikeADatasetsMountPoint_isNotTheDatasets() throws IOException {
    mountingPmfs();
    job("1", "prolog", "pmfs:source=" + ofUser);
    Path place = base.resolve("mnt").resolve(record("1", "key"));
    mountNamed(place, "elsewhere");

    job("1", "epilog", "");

    assertThat(Mounts.at(place)).isFalse();
    assertThat(calls()).as("the dataset is read-only").doesNotContain("drain --timeout");
  }

  /** Copies that were kept ten days ago, with a mark of the user's that they are unsaved. */
  private Path kept(String name) throws IOException {
    Path copies = Files.createDirectories(tier.resolve(user.uid() + "-" + name));
    Path mark = Files.createFile(copies.resolve("not-at-the-source"));
    user.own(copies.toString());
    user.own(mark.toString());
    Path kept = Files.createFile(tier.resolve(copies.getFileName() + ".kept"));
    Files.setLastModifiedTime(kept, FileTime.from(Instant.now().minus(Duration.ofDays(10))));
    return copies;
  }

  @Test
  void mark_ofAUser_countsOnlyIfRootKnowsOfAWritableMount() throws IOException {
    Files.createFile(tier.resolve(".outputs-known"));
    Path planted = kept("aa");
    Path written = kept("bb");
    Files.createFile(tier.resolve(written.getFileName() + ".writable"));

    job("1", "epilog", "");
    assertThat(planted).as("no directory of jobs yet").exists();
    Files.createDirectory(base);
    job("1", "prolog", "");

    assertThat(planted).doesNotExist();
    assertThat(written).exists();
    Files.delete(written.resolve("not-at-the-source"));
    job("1", "epilog", "");
    assertThat(written).doesNotExist();
    assertThat(names(tier)).containsExactly(".outputs-known");
  }

  @Test
  void mark_ofAnOlderVersion_countsOnce() throws IOException {
    Path written = kept("aa");
    job("1", "prolog", "");
    assertThat(written).exists();
    Path planted = kept("bb");
    job("1", "epilog", "");
    assertThat(planted).doesNotExist();
    assertThat(written).exists();
  }

  /** A job that has ended without its epilogue. */
  private Path lost() throws IOException {
    Path record = Files.createDirectories(base.resolve("keys/" + user.uid() + "-ee")).resolve("77");
    Files.createDirectories(base.resolve("jobs/77"));
    Files.createDirectories(base.resolve("mnt/" + user.uid() + "-ee"));
    Files.createDirectories(base.resolve("locks"));
    return Files.writeString(record, "slurm 77\n");
  }

  private void run(int uid, String command) throws IOException {
    Process process =
        new ProcessBuilder(
                "setpriv",
                "--reuid=" + uid,
                "--clear-groups",
                "env",
                "-i",
                "PATH=/usr/bin:/bin",
                "SLURM_JOB_ID=77",
                "bash",
                "-c",
                "echo ready; " + command)
            .start();
    processes.add(process);
    assertThat(process.inputReader().readLine()).isEqualTo("ready");
  }

  @Test
  void process_ofAnotherUserWithTheJobsNumber_keepsNothing() throws IOException {
    Path record = lost();
    int other = user.uid() + 1;
    run(other, "read");
    run(other, "exec -a 'slurmstepd: [77.0]' sleep 300");

    job("1", "epilog", "");

    assertThat(record).doesNotExist();
  }

  @Test
  void process_ofTheJob_keepsItsMount() throws IOException {
    Path record = lost();
    run(user.uid(), "read");

    job("1", "epilog", "");
    assertThat(record).exists();
    processes.get(0).destroyForcibly().onExit().join();
    job("1", "epilog", "");
    assertThat(record).doesNotExist();
  }

  @Test
  void job_withTheNumberOfItsArray_hasNotEndedWithAnother() throws IOException {
    Path record = lost();
    String other = "echo JobId=78 ArrayJobId=77 ArrayTaskId=1 JobState=COMPLETED X; ";
    program("scontrol", other + "echo JobId=77 ArrayJobId=77 ArrayTaskId=2 JobState=RUNNING X");

    job("1", "epilog", "");
    assertThat(record).exists();
    program("scontrol", other + "echo JobId=77 ArrayJobId=77 ArrayTaskId=2 JobState=FAILED X");
    job("1", "epilog", "");
    assertThat(record).doesNotExist();
  }

  /** A mount whose program answers nothing. */
  private void hang(Path place) throws IOException {
    String options = "fd=3,rootmode=40000,user_id=%d,group_id=0,allow_other".formatted(user.uid());
    String mount = "exec 3<>/dev/fuse; mount -i -t fuse -o $0 hangs \"$1\" && echo ready; read";
    Process process = new ProcessBuilder("bash", "-c", mount, options, "" + place).start();
    processes.add(process);
    assertThat(process.inputReader().readLine()).isEqualTo("ready");
  }

  @Test
  void mountsOfAUser_thatHang_holdNothingUp() throws IOException {
    Machine.requireFuse();
    program(
        "pmfs",
        "[ $1 != mount-program ] || { printf '%%s\\n' \"$*\" >>%s; umount -l -i -c \"$4\"; }"
            .formatted(calls));
    job("1", "prolog", "pmfs:source=" + ofUser);
    Path runtime = scratch.directory("run-" + user.uid());
    user.own(runtime.toString());
    Path kept = kept("aa");
    Path whole = kept("bb");
    hang(runtime);
    hang(Files.createDirectory(kept.resolve("b c")));
    hang(Files.createDirectory(kept.resolve("0123456789abcdef-0-1.kept")));
    hang(whole);

    job("1", "epilog", "");

    assertThat(calls()).contains("detach ");
    assertThat(Mounts.below(scratch.root())).isEmpty();
    assertThat(kept).doesNotExist();
    assertThat(whole).doesNotExist();
  }

  /** A directory in which all users may make files, as /tmp, with one of the user's in it. */
  private Path ofUserIn(String shared, String name) throws IOException {
    Path directory = scratch.directory(shared);
    Command.run("chmod", "1777", directory.toString()).expect(0);
    Path made = Files.createDirectory(directory.resolve(name));
    user.own(made.toString());
    return made;
  }

  private void configure(String line) throws IOException {
    Files.write(scratch.root().resolve("job.conf"), List.of(line), StandardOpenOption.APPEND);
  }

  @Test
  void tier_thatAUserMakesMeanwhile_isNotUsed() throws IOException {
    Path target = scratch.root().resolve("target");
    Path prepared = ofUserIn("local", ".prepared");
    Files.createSymbolicLink(prepared.resolve(".outputs-known"), target);
    Path directory = prepared.resolveSibling("pmfs");
    configure("TIERS=(ssd:" + directory + ":80%)");
    program(
        "mkdir",
        "[[ $* != *%s* ]] || mv -T %s %s; exec /usr/bin/mkdir \"$@\""
            .formatted(directory, prepared, directory));

    job("1", "prolog", "pmfs:source=" + ofUser);

    assertThat(target).doesNotExist();
    assertThat(mode(directory)).isEqualTo("rwxr-xr-x");
    assertThat(problem("1")).isEqualTo("cannot make the directory for copies");
    assertThat(calls()).isEmpty();
  }

  @Test
  void tiers_absent_areMadeForRootAlone() throws IOException {
    Path theirs = ofUserIn("local", "theirs");
    List<Path> tiers = List.of(theirs.resolveSibling("pmfs"), theirs.resolveSibling("sub/pmfs"));
    configure("TIERS=(ssd:%s:80%% ssd:%s:80%%)".formatted(tiers.get(0), tiers.get(1)));

    job("1", "prolog", "pmfs:source=" + ofUser);

    for (Path directory : tiers) {
      assertThat(calls()).contains("--tier ssd:" + directory + "/" + record("1", "key") + ":80%");
      assertThat(mode(directory)).isEqualTo("rwx--x--x");
    }
    assertThat(mode(theirs.resolveSibling("sub"))).isEqualTo("rwxr-xr-x");
  }

  private static String mode(Path file) throws IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(file));
  }

  @Test
  void tier_thatBecameADirectoryOfAUser_getsNoMark() throws IOException {
    mountingPmfs();
    job("1", "prolog", "pmfs:source=" + ofUser);
    Path target = scratch.root().resolve("target");
    Path directory = ofUserIn("local", "pmfs");
    Files.createSymbolicLink(directory.resolve(record("1", "key") + ".kept"), target);
    configure("TIERS=(ssd:" + directory + ":80%)");

    job("2", "prolog", "pmfs:source=" + ofUser + ",keep");

    assertThat(record("2", "mount")).isEqualTo(base + "/mnt/" + record("2", "key") + ".2");
    assertThat(target).doesNotExist();
  }

  /** They may be older than the directory's mode. */
  @Test
  void mark_thatIsALink_isNotFollowed() throws IOException {
    Path target = scratch.root().resolve("target");
    String comment = "pmfs:source=" + ofUser + ",writable,keep";
    job("1", "prolog", comment);
    String key = record("1", "key");
    job("1", "epilog", "");
    List<Path> marks = new ArrayList<>();
    for (String name : List.of(".outputs-known", key + ".kept", key + ".writable")) {
      Path mark = tier.resolve(name);
      Files.deleteIfExists(mark);
      marks.add(Files.createSymbolicLink(mark, target));
    }

    job("2", "prolog", comment);

    assertThat(target).doesNotExist();
    assertThat(marks).allSatisfy(mark -> assertThat(mark).isRegularFile());
  }

  @Test
  void runtimeDirectory_ofAUser_isNotSwept() throws IOException {
    Path file = Files.createFile(scratch.directory("other").resolve("requests"));
    Path directory = ofUserIn("local", "run");
    Files.createSymbolicLink(directory.resolve("99999999-aaaaaaaaaa.pipes"), file.getParent());
    configure("RUNTIME=" + directory);

    job("1", "prolog", "pmfs:source=" + ofUser);
    job("1", "epilog", "");

    assertThat(file).exists();
  }

  /** The user could keep a lock for ever by a descriptor of it. */
  @Test
  void programs_ofAUser_haveNoDescriptorOfRoots() throws IOException {
    Path seen = scratch.root().resolve("seen");
    program(
        "setpriv",
        "printf '%%s\\n' \"$*\" $(readlink /proc/$$/fd/*) >>%s; exec /usr/bin/setpriv \"$@\""
            .formatted(seen));
    user.own(scratch.directory("home").toString());
    user.own(scratch.directory("run-" + user.uid()).toString());

    job("1", "prolog", "pmfs:source=" + ofUser + ",cluster,writable", "2", "a,b");
    job("1", "epilog", "");

    assertThat(calls()).contains("--cluster-secret-file");
    assertThat(Files.readString(seen))
        .contains("job-secret", "readlink -e", "not-at-the-source", "-delete", "session.????????")
        .doesNotContain(base.resolve("locks").toString())
        .as("the output of the script, a pipe of slurmd's")
        .doesNotContainPattern("/pmfs-it\\d+[.](out|err)\n");
  }

  /** Another user could have made any name that follows from the job's number alone. */
  @Test
  void userBegin_mountsWhereNobodyElseMadeADirectory() throws IOException {
    program("srun", "while [[ $1 == --* ]]; do shift; done; SLURMD_NODENAME=n1 exec \"$@\"");
    program(
        "pmfs",
        "printf '%%s\\n' \"$*\" >>%s; while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\""
            .formatted(calls));
    Path places = scratch.directory("places");
    Path taken = Files.createDirectory(places.resolve("pmfs-77"));
    user.own(taken.toString());
    Map<String, String> environment = new HashMap<>();
    environment.put("PATH", scratch.root().resolve("bin") + ":" + System.getenv("PATH"));
    environment.put("TMPDIR", places.toString());
    environment.put("PMFS_SIGNS", scratch.directory("signs").toString());
    environment.put("SLURM_JOB_ID", "77");
    String begin = Installation.launcherOfCheckout().resolveSibling("slurm/user/begin").toString();

    String script = ". \"$0\" \"$1\"; printf '%s\\n' \"$PMFS_MOUNT\"";
    List<String> line = List.of("bash", "-c", script, begin, site.toString());
    String place = Command.run(environment, LONG, line).expect(0).out().strip();

    assertThat(place).matches(taken + "\\.\\w{6}");
    assertThat(calls()).contains("--mountpoint " + place + " ");
  }

  /** What the user may have a process of theirs start that root has started in no job. */
  private static String escape(int seconds) {
    return "setsid sleep %d </dev/null >/dev/null 2>&1 &".formatted(seconds);
  }

  private static void requireControlGroups() {
    assumeTrue(
        Stream.of("freezer", "unified", "")
            .map(Path.of("/sys/fs/cgroup")::resolve)
            .anyMatch(group -> Files.isWritable(group.resolve("cgroup.procs"))),
        "needs control groups in which the test may make others");
  }

  @Test
  void process_startedByADaemonOfADataset_endsWithTheDataset() throws IOException {
    requireControlGroups();
    program("scontrol", "echo JobId=1 JobState=RUNNING X");
    String become = "setpriv --reuid=%d --clear-groups ".formatted(user.uid());
    program(
        "pmfs",
        "case $*/$PMFS_SERVED_JOB in mount*'/a '*/) %s ;; mount*'/b '*/) %s ;; esac"
            .formatted(become + escape(301), become + escape(302)));
    for (String name : List.of("a", "b")) {
      user.own(Files.createDirectory(ofUser.resolve(name)).toString());
    }

    job("1", "prolog", "pmfs:source=" + ofUser.resolve("a"));
    job("2", "prolog", "pmfs:source=" + ofUser.resolve("b"));
    job("3", "prolog", "pmfs:source=" + ofUser.resolve("a"));
    job("1", "epilog", "");
    assertThat(user.processes()).contains("sleep 301", "sleep 302");
    job("3", "epilog", "");
    assertThat(user.processes()).doesNotContain("sleep 301").contains("sleep 302");
    job("2", "epilog", "");
    assertThat(user.processes()).doesNotContain("sleep 302");
  }

  @Test
  void process_startedByAProgramOfThePrologue_endsWithThePrologue() throws IOException {
    requireControlGroups();
    program(
        "readlink", "[ $UID = 0 ] || { %s }; exec /usr/bin/readlink \"$@\"".formatted(escape(303)));
    Path started = ofUser.resolve("started");
    program(
        "stat", "pgrep -fu $UID 'sleep 303' >>%s; exec /usr/bin/stat \"$@\"".formatted(started));

    job("1", "prolog", "pmfs:source=" + ofUser);

    assertThat(started).isNotEmptyFile();
    assertThat(user.processes()).doesNotContain("sleep 303");
  }

  private static List<String> names(Path directory) throws IOException {
    try (Stream<Path> list = Files.list(directory)) {
      return list.map(path -> String.valueOf(path.getFileName())).toList();
    }
  }
}
