package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.StandardCopyOption.COPY_ATTRIBUTES;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.machine.NativeText;
import io.pmfs.memory.DirectMemory;
import io.pmfs.posix.Await;
import io.pmfs.settings.MountOption;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code scripts/pmfs} in an installed tree, with a shell script as Java. */
@Timeout(60)
final class LauncherTest {
  private static final String READY = "printf '\\001ready\\n'; exec >/dev/null 2>&1; ";

  private static final String PROCESSOR =
      System.getProperty("os.arch", "").replace("amd64", "x86_64");

  private static final List<String> LAUNCHER_STARTS =
      List.of(
          "bash",
          "cat",
          "echo",
          "env",
          "flock",
          "grep",
          "id",
          "mkdir",
          "mktemp",
          "readlink",
          "realpath",
          "rmdir",
          "sed",
          "setsid",
          "uname");

  @TempDir private Path temporary;
  private Path launcher = Path.of("unset");
  private Path java = Path.of("unset");

  /** The output and exit status of a run. */
  private record Result(int status, String out, String err) {}

  @BeforeEach
  void install() throws Exception {
    Path home = temporary.toRealPath();
    Path original = Path.of("").toAbsolutePath().resolve("../scripts/pmfs");
    launcher = Files.createDirectories(home.resolve("bin")).resolve("pmfs");
    Files.copy(original, launcher);
    for (String other : List.of("pmfs-supervise", "pmfs-for-user", "pmfs-paths", "pmfs-run")) {
      Files.copy(original.resolveSibling(other), launcher.resolveSibling(other));
    }
    Files.writeString(
        Files.createDirectories(home.resolve("lib")).resolve("mount-flags"), MountFlags.text());
    Files.createDirectories(home.resolve("native/jni/" + PROCESSOR + "-Linux"));
    java = Files.createDirectories(home.resolve("jdk/bin")).resolve("java");
    Files.writeString(home.resolve("jdk/release"), "JAVA_VERSION=\"17.0.9\"\n");
    fakeJava("printf '%s\\n' \"$@\"");
  }

  @Test
  void command_other_isExecutedCheaply() throws Exception {
    Result result = run("status", "/mnt/ä b");

    assertThat(result.status()).isZero();
    assertThat(result.out().lines())
        .containsSubsequence("-XX:TieredStopAtLevel=1", "io.pmfs.cli.Main", "status", "/mnt/ä b");
    assertThat(result.out()).contains("-Dfile.encoding=ISO-8859-1", "/lib/*");
  }

  @ParameterizedTest
  @ValueSource(strings = {"status", "profile"})
  void command_onATerminal_knowsItsRows(String command) throws Exception {
    fakeJava("echo rows $PMFS_TERMINAL_ROWS");
    String script = "stty rows 33 cols 99; '" + launcher + "' " + command;
    List<String> words = new ArrayList<>(builder(List.of("TERM=xterm"), command).command());
    words.subList(words.indexOf(launcher.toString()), words.size()).clear();
    words.addAll(List.of("script", "-qec", script, "/dev/null"));
    Process process = new ProcessBuilder(words).redirectErrorStream(true).start();
    String out = new String(process.getInputStream().readAllBytes(), UTF_8);

    assertThat(out).isEqualTo("rows 33\r\n");
    assertThat(process.waitFor()).isZero();
    assertThat(run(command).out()).isEqualTo("rows\n");
  }

  @Test
  void run_plan_isForTheScriptAlone() throws Exception {
    fakeJava("echo plan");

    Result result = run(List.of("PMFS_RUN_PLAN=1"), "run", "--", "echo", "ran");

    assertThat(result.out()).isEmpty();
    assertThat(result.status()).isNotZero();
  }

  @Test
  void command_throughSymbolicLinks_findsItsHome() throws Exception {
    Path link = Files.createSymbolicLink(temporary.resolve("link"), launcher);
    launcher = Files.createSymbolicLink(temporary.resolve("link2"), link);

    assertThat(run("status").out()).contains(temporary.toRealPath() + "/lib/*");
  }

  /** The caller's directory may be in the mount, which the command must not keep busy. */
  @Test
  void umount_leavesTheDirectoryButKnowsIt() throws Exception {
    fakeJava("echo $PWD $PMFS_LAUNCH_DIR");

    assertThat(run("umount", ".").out()).matches("/ /.+\n");
    assertThat(run("status", ".").out()).doesNotStartWith("/ ");
  }

  @Test
  void command_failing_passesItsStatusOn() throws Exception {
    fakeJava("echo 'pmfs: x' >&2; exit 3");

    assertThat(run("umount", "/x")).isEqualTo(new Result(3, "", "pmfs: x\n"));
  }

  @Test
  void mount_help_startsNoDaemon() throws Exception {
    assertThat(run("mount", "--help").out()).contains("-XX:TieredStopAtLevel=1");
  }

  @Test
  void mount_ready_relaysAndReturnsWhileTheDaemonGoesOn() throws Exception {
    Path pidFile = temporary.resolve("pid");
    fakeJava("echo $$ >" + pidFile + "; pwd; echo mounted; " + READY + "exec sleep 1000");

    Result result = run("mount", "/a", "/b");

    assertThat(result).isEqualTo(new Result(0, "/\nmounted\n", ""));
    ProcessHandle daemon = process(pidFile);
    try {
      assertThat(daemon.isAlive()).isTrue();
      assertThat(ignoredSignals(daemon))
          .as("no more than this process, which may have been started with SIGINT ignored")
          .isEqualTo(ignoredSignals(ProcessHandle.current()));
    } finally {
      daemon.destroy();
    }
  }

  /** An empty file marks that it was tried. */
  @Test
  void mount_first_makesTheArchiveOfClassesOnce() throws Exception {
    Path made = temporary.resolve("made");
    Path archiver = launcher.resolveSibling("archive-classes");
    Files.writeString(archiver, "#!/bin/sh\necho made >>" + made + "\n");
    Files.setPosixFilePermissions(archiver, PosixFilePermissions.fromString("rwxr-xr-x"));
    fakeJava(READY);
    Path archive = temporary.resolve("classes.jsa");

    assertThat(run(List.of("SLURM_JOB_ID=1"), "mount", "/a", "/b").status()).isZero();
    assertThat(archive).as("a job's processors are its own").doesNotExist();
    assertThat(run("mount", "/a", "/b")).isEqualTo(new Result(0, "", ""));
    assertThat(archive).isEmptyFile();
    assertThat(run("mount", "/a", "/b").status()).isZero();
    fakeJava("printf '%s\\n' \"$@\"");
    assertThat(run("status").out()).contains("Main").doesNotContain("SharedArchiveFile");
    Await.until("the archive is made", () -> Files.exists(made));
    assertThat(made).hasContent("made\n");
  }

  @Test
  void mount_callersDescriptors_areNotKept() throws Exception {
    Path pidFile = temporary.resolve("pid");
    fakeJava("echo $$ >" + pidFile + "; " + READY + "exec sleep 1000");
    Process process =
        NativeText.process(
                List.of(
                    "bash",
                    "-c",
                    "exec 7</etc/passwd; PMFS_RUNTIME_DIR=${1%/*} PMFS_JAVA=$1 $2 mount /a /b",
                    "x",
                    java.toString(),
                    launcher.toString()))
            .start();
    assertThat(process.waitFor(20, TimeUnit.SECONDS)).isTrue();

    ProcessHandle daemon = process(pidFile);
    try (var descriptors = Files.list(Path.of("/proc/" + daemon.pid() + "/fd"))) {
      assertThat(descriptors.map(d -> d.getFileName().toString()))
          .contains("0", "1", "2")
          .as("the session's own")
          .isSubsetOf("0", "1", "2", "3");
    } finally {
      daemon.destroy();
    }
  }

  @Test
  void mount_daemonFails_passesItsErrorAndStatusOn() throws Exception {
    fakeJava("echo half; echo 'pmfs: why' >&2; exit 5");

    assertThat(run("mount", "/a", "/b")).isEqualTo(new Result(5, "half\n", "pmfs: why\n"));
  }

  @Test
  void mount_daemonFailsBeforeTheLauncherGoesOn_passesItsErrorAndStatusOn() throws Exception {
    fakeJava("echo half; echo 'pmfs: why' >&2; exit 5");
    Path slow = temporary.resolve("slow");
    Files.writeString(slow, "trap '[[ $BASH_COMMAND != pid=* ]] || sleep 0.5' DEBUG\n");

    assertThat(run(List.of("BASH_ENV=" + slow), "mount", "/a", "/b"))
        .isEqualTo(new Result(5, "half\n", "pmfs: why\n"));
  }

  @Test
  void mount_doneWithoutDaemon_isZero() throws Exception {
    fakeJava("echo 'pmfs: already mounted'");

    assertThat(run("mount", "/a", "/b")).isEqualTo(new Result(0, "pmfs: already mounted\n", ""));
  }

  @Test
  void mount_terminatedWhileStarting_stopsTheDaemonFirst() throws Exception {
    Path stopped = temporary.resolve("stopped");
    fakeJava(
        "trap 'echo yes >"
            + stopped
            + "; exit 143' TERM; echo starting; while :; do sleep 0.05; done");
    Process process = start("mount", "/a", "/b");
    assertThat(process.getInputStream().read()).isEqualTo('s');

    process.destroy();

    assertThat(process.waitFor(20, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).isEqualTo(143);
    assertThat(stopped).hasContent("yes\n");
  }

  @Test
  void mount_foreground_isTheDaemonOrItsSupervisor() throws Exception {
    fakeJava(
        "echo \"background=${PMFS_BACKGROUND-none}\"; echo \"pids $$ $PPID\"; echo $*; exit 4");
    Process process = start("mount", "--foreground", "/a", "/b");
    String out = new String(process.getInputStream().readAllBytes(), UTF_8);

    assertThat(process.waitFor(20, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).isEqualTo(4);
    assertThat(out).startsWith("background=none\n").contains("-Xmx192m");
    assertThat(out.lines().filter(line -> line.startsWith("pids ")).findFirst().orElseThrow())
        .matches("pids .*\\b" + process.pid() + "\\b.*");
  }

  @ParameterizedTest
  @ValueSource(strings = {"--foreground", "--verbose"})
  void mount_daemonIsKilledBeforeItIsReady_saysSo(String option) throws Exception {
    Assumptions.assumeTrue(Files.isWritable(Path.of("/dev/fuse")), "no supervisor for users");
    fakeJava("kill -KILL $$");

    Result result = run("mount", option, "/a", "/b");

    assertThat(result.status()).isEqualTo(137);
    assertThat(result.err())
        .isEqualTo(
            "pmfs: the daemon was killed before the mount answered; if its memory is limited,"
                + " allow it 1 GiB\n");
  }

  @Test
  void mount_forUser_knowsTheMountPointAmongAllOptions() throws Exception {
    supervisorThatShowsItsArguments();
    List<String> line = new ArrayList<>(List.of("--verbose", "mount", "/source", "/mnt"));
    for (MountOption<?> option : MountOption.options()) {
      String name = option.commandLineName();
      line.addAll(
          option.kind() == MountOption.Kind.FLAG
              ? List.of("--no-" + name.substring(2), name)
              : List.of(name, "value of " + option));
    }
    line.addAll(List.of("--config", "/config", "--foreground", "--format"));

    assertThat(run(line.toArray(String[]::new)).out().lines().limit(9))
        .containsExactly(
            "--user",
            "value of user",
            "--mountpoint",
            "/mnt",
            "--java",
            java.toString(),
            "--capability",
            "--allow-other",
            launcher.toString());
  }

  @Test
  void mount_forUserInTheEnvironment_isForThatUser() throws Exception {
    supervisorThatShowsItsArguments();

    assertThat(run(List.of("PMFS_USER=ada"), "mount", "/a", "--", "--user").out())
        .startsWith("--user\nada\n--mountpoint\n--user\n--java\n");
    assertThat(run(List.of("PMFS_USER=ada"), "mount", "--user=bob", "/a", "/b").out())
        .startsWith("--user\nbob\n--mountpoint\n/b\n");
  }

  @Test
  void mount_forNobody_isRefusedAndNotForRoot() throws Exception {
    Result result = run("mount", "--user", "", "/a", "/b");

    assertThat(result.status()).isEqualTo(2);
    assertThat(result.err()).startsWith("pmfs: --user: ").hasLineCount(1);
  }

  private void supervisorThatShowsItsArguments() throws IOException {
    Files.writeString(
        launcher.resolveSibling("pmfs-supervise"), "#!/bin/bash\nprintf '%s\\n' \"$@\"\n", UTF_8);
  }

  @Test
  void heap_fromEnvironment_isUsedOrRefused() throws Exception {
    assertThat(run(List.of("PMFS_HEAP=1g"), "mount", "--foreground", "/a").out())
        .contains("-Xmx1g\n");
    Result refused = run(List.of("PMFS_HEAP=1m3"), "mount", "/a");
    assertThat(refused.status()).isEqualTo(2);
    assertThat(refused.err()).startsWith("pmfs: PMFS_HEAP: '1m3' is not a size");
    assertThat(run(List.of("PMFS_JAVA_OPTIONS=-Xmx64m"), "mount", "--foreground", "/a").out())
        .contains("-Xmx64m\n");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "PMFS_HEAP=1m",
        "PMFS_JAVA_OPTIONS=-Xmx1m",
        "PMFS_JAVA_OPTIONS=-Da=b -XX:MaxHeapSize=1m"
      })
  void heap_tooSmall_isRefusedWithTheLeast(String assignment) throws Exception {
    String variable = assignment.substring(0, assignment.indexOf('='));
    for (List<String> words :
        List.of(
            List.of("mount", "/a"),
            List.of("node-cache"),
            List.of("pack", "/a"),
            List.of("drain", "--state", "/a"))) {
      assertThat(run(List.of(assignment), words.toArray(String[]::new)))
          .isEqualTo(
              new Result(
                  2,
                  "",
                  "pmfs: %s: '1m' is too little for pmfs %s; give at least 32m\n"
                      .formatted(variable, words.get(0))));
    }
  }

  @Test
  void javaOptions_thatJavaRefuses_areOneLine() throws Exception {
    fakeJava(
        "case \"$*\" in *-XX:Wrong*-version) echo 'Unrecognized VM option'; echo more; exit 1;;"
            + " esac; printf '%s\\n"
            + "' \"$@\"");
    assertThat(run(List.of("PMFS_JAVA_OPTIONS=-Da=b"), "mount", "--foreground", "/a").out())
        .contains("-Da=b\n");
    for (String command : List.of("mount", "node-cache", "pack")) {
      assertThat(run(List.of("PMFS_JAVA_OPTIONS=-XX:Wrong"), command, "/a"))
          .isEqualTo(
              new Result(
                  2,
                  "",
                  "pmfs: PMFS_JAVA_OPTIONS: java refuses '-XX:Wrong': Unrecognized VM option;"
                      + " correct or unset it\n"));
    }
  }

  /** One line, instead of pages from Java or a mount that dies during its start. */
  @Test
  void limits_thatAreTooLow_areOneLineWithTheNumberThatIsNeeded() throws Exception {
    supervisorThatShowsItsArguments();
    assertThat(underLimit("-n 64", "status"))
        .isEqualTo("open files: the limit is 64, and pmfs status needs 128; raise it (ulimit -n");
    assertThat(underLimit("-n 255", "mount", "/a", "/b"))
        .isEqualTo("open files: the limit is 255, and pmfs mount needs 256; raise it (ulimit -n");
    assertThat(underLimit("-v 1000000", "mount", "/a", "/b"))
        .isEqualTo(
            "address space: the limit is 1000000 KiB, and pmfs mount needs 2621440; raise it"
                + " (ulimit -v");
    assertThat(underLimit("-d 500000", "mount", "/a", "/b"))
        .isEqualTo(
            "data: the limit is 500000 KiB, and pmfs mount needs 1048576; raise it (ulimit -d");
    // A limit on root's own threads has no effect.
    assertThat(underLimit("-u 50", "mount", "--user", "nobody", "/a", "/b"))
        .matches(
            "threads: [0-9]+ more can be started, and pmfs mount needs 110; raise the limit .*");
    assertThat(underLimit("-f 1000", "mount", "/a", "/b"))
        .isEqualTo(
            "file size: the limit is 1000 KiB, and pmfs mount needs 1048576, or as much as the"
                + " largest file; raise it (ulimit -f");
    assertThat(underLimit("-t 59", "mount", "/a", "/b"))
        .isEqualTo(
            "processor time: the limit is 59 s, and pmfs mount needs 60, or as much as all its"
                + " readers; raise it (ulimit -t");
    assertThat(underLimit("-s 128", "mount", "/a", "/b"))
        .isEqualTo("stack: the limit is 128 KiB, and pmfs mount needs 256; raise it (ulimit -s");
    // Soft limits are raised as far as they can be.
    assertThat(underLimit("-S -f 1000", "mount", "--foreground", "/a", "/b")).isEmpty();
    assertThat(underLimit("-S -t 59", "mount", "--foreground", "/a", "/b")).isEmpty();
    assertThat(underLimit("-n 256", "mount", "--foreground", "/a", "/b")).isEmpty();
  }

  /** The launcher's message up to the first remedy. */
  private String underLimit(String limit, String... arguments) throws Exception {
    List<String> words = new ArrayList<>(builder(List.of(), arguments).command());
    words.addAll(0, List.of("bash", "-c", "ulimit " + limit + "; exec \"$@\"", "bash"));
    Process process = new ProcessBuilder(words).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), UTF_8);
    if (process.waitFor() != 5) {
      return "";
    }
    assertThat(output.lines()).hasSize(1);
    return output.replaceFirst("^pmfs: ", "").replaceFirst(",[^,]*\n$", "");
  }

  @Test
  void classArchive_isUsedIfThere() throws Exception {
    assertThat(run("mount", "--foreground", "/a").out()).doesNotContain("Archive");
    Path archive = Files.writeString(temporary.toRealPath().resolve("classes.jsa"), "archive");
    assertThat(run("mount", "--foreground", "/a").out())
        .contains("-XX:SharedArchiveFile=" + archive);
    for (String command : List.of("mount --foreground", "status")) {
      String[] words = (command + " /a").split(" ");
      assertThat(run(List.of("PMFS_CLASS_LIST=/list"), words).out())
          .contains("-XX:DumpLoadedClassList=/list")
          .doesNotContain("SharedArchiveFile");
    }
    assertThat(run(List.of("PMFS_CLASS_LIST=/list", "PMFS_ARCHIVE=/new"), "").out())
        .contains("-Xshare:dump", "-XX:SharedClassListFile=/list", "-XX:SharedArchiveFile=/new");
  }

  @Test
  void stage_withErrorsToAFile_hasMemoryForListsAndNoBar() throws Exception {
    fakeJava("printf '%s\\n' \"$@\" \"columns=${PMFS_TERMINAL_COLUMNS-none}\"");

    String out = run(List.of("PMFS_TERMINAL_COLUMNS=99"), "stage", "/mnt").out();

    assertThat(out.lines()).contains("-Xmx128m", "stage", "columns=none");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "PMFS_CRASH_LIMIT=many",
        "PMFS_CRASH_LIMIT=-1",
        "PMFS_CRASH_LIMIT=99999999999999999999",
        "PMFS_WATCHDOG=20s",
        "PMFS_WATCHDOG=0",
        "PMFS_WATCHDOG= 3"
      })
  void supervise_variableThatIsNoNumber_isRefused(String assignment) throws Exception {
    launcher = launcher.resolveSibling("pmfs-supervise");
    String[] parts = assignment.split("=", 2);

    Result refused = run(List.of(assignment), "pmfs", "mount");

    assertThat(refused.status()).isEqualTo(2);
    assertThat(refused.err())
        .startsWith("pmfs: %s: '%s' is not a number ".formatted(parts[0], parts[1]))
        .hasLineCount(1);
  }

  @Test
  void java_tooOld_cannot() throws Exception {
    Files.writeString(temporary.resolve("jdk/release"), "JAVA_VERSION=\"11.0.2\"\n");

    Result result = run("status");

    assertThat(result.status()).isEqualTo(5);
    assertThat(result.err()).contains("Java 11 is too old, and pmfs needs 17").hasLineCount(1);
  }

  @Test
  void java_withoutReleaseFile_isAsked() throws Exception {
    Files.delete(temporary.resolve("jdk/release"));
    fakeJava("[ \"$1\" = -version ] && echo 'openjdk version \"1.8.0_402\"' >&2; exit 0");

    assertThat(run("status").status()).isEqualTo(5);
  }

  @Test
  void java_missing_cannot() throws Exception {
    Files.delete(java);

    Result result = run("status");

    assertThat(result.status()).isEqualTo(5);
    assertThat(result.err()).contains("PMFS_JAVA").hasLineCount(1);
  }

  @Test
  void java_forMusl_cannot() throws Exception {
    Files.writeString(temporary.resolve("jdk/release"), "JAVA_VERSION=\"17.0.9\"\nLIBC=\"musl\"\n");

    Result result = run("status");

    assertThat(result.status()).isEqualTo(5);
    assertThat(result.err()).contains("built for musl, and pmfs needs glibc").hasLineCount(1);
  }

  @Test
  void java_besideTheLibraries_isUsedUnlessAnotherIsNamed() throws Exception {
    fakeJava("echo named");
    Path own = Files.createDirectories(temporary.toRealPath().resolve("runtime/bin"));
    Files.createSymbolicLink(own.resolveSibling("release"), java.resolveSibling("../release"));
    Files.copy(java, own.resolve("java"), COPY_ATTRIBUTES);
    Files.writeString(own.resolve("java"), "#!/bin/bash\necho own\n");

    assertThat(run("status").out()).isEqualTo("named\n");
    assertThat(run(List.of("PMFS_JAVA=", "JAVA_HOME=" + temporary + "/jdk"), "status").out())
        .isEqualTo("own\n");
  }

  @Test
  void java_besideTheLibraries_forAnotherProcessor_isNotUsed() throws Exception {
    fakeJava("echo named");
    Path runtime = Files.createDirectories(temporary.toRealPath().resolve("runtime"));
    Files.createDirectories(runtime.resolve("bin"));
    Files.copy(java, runtime.resolve("bin/java"), COPY_ATTRIBUTES);
    Files.writeString(runtime.resolve("bin/java"), "#!/bin/bash\necho own\n");
    List<String> variables = List.of("PMFS_JAVA=", "JAVA_HOME=" + temporary + "/jdk");

    writeRelease(runtime, PROCESSOR);
    assertThat(run(variables, "status").out()).isEqualTo("own\n");
    writeRelease(runtime, "sparcv9");
    assertThat(run(variables, "status").out()).isEqualTo("named\n");
  }

  private static void writeRelease(Path runtime, String processor) throws IOException {
    Files.writeString(
        runtime.resolve("release"), "JAVA_VERSION=\"17.0.9\"\nOS_ARCH=\"" + processor + "\"\n");
  }

  @ParameterizedTest
  @CsvSource({
    "java, status, 5",
    "setsid, mount /a /b, 5",
    "setsid, run --source / -- true, 125",
    "flock, run --source / -- true, 125"
  })
  void program_missing_isNamedWithItsRemedy(String program, String line, int status)
      throws Exception {
    List<String> variables = new ArrayList<>(List.of("PATH=" + pathWithout(program)));
    if (program.equals("java")) {
      variables.add("PMFS_JAVA=");
    }

    Result result = run(variables, line.split(" "));

    assertThat(result.status()).isEqualTo(status);
    assertThat(result.err())
        .startsWith("pmfs: " + program + ": not found")
        .contains("install")
        .hasLineCount(1);
  }

  @Test
  void run_orSource_doesWithoutAMissingProgram() throws Exception {
    Result result =
        run(
            List.of("PATH=" + pathWithout("flock")),
            "run --source / --or-source -- echo ran".split(" "));

    assertThat(result.status()).isZero();
    assertThat(result.out()).isEqualTo("ran\n");
  }

  /** The mount is a line that the script reads in place of mountinfo's, while a file exists. */
  @ParameterizedTest
  @CsvSource({
    "rw, exit 3, true, 124",
    "rw, rm $MOUNTED; exit 3, true, 124",
    "rw, kill -KILL $PPID, true, 124",
    "rw, rm $MOUNTED, true, 0",
    "rw, exit 3, false, 1",
    "ro, exit 1, true, 0"
  })
  void run_umountFails_isZeroOnlyWithoutWrittenFiles(
      String option, String umount, String command, int status) throws Exception {
    Path mounted = temporary.resolve("mounted");
    Path mountpoint = Files.createDirectory(temporary.toRealPath().resolve("mnt"));
    fakeJava(
        """
        MOUNTED=%s
        case " $* " in
        *' run '*) printf '%%s\\0' /source %s %s/x true x 1 1 0 /source %s end ;;
        *' mount '*) touch $MOUNTED ;;
        *' umount '*) %s ;;
        esac
        """
            .formatted(mounted, mountpoint, temporary.toRealPath(), mountpoint, umount));
    Path table = temporary.resolve("table");
    Files.writeString(
        table,
        """
        mapfile() {
          [ "${!#}" = lines ] || { builtin mapfile "$@"; return; }
          lines=()
          [ ! -e %s ] || lines=('36 25 0:99 / %s %s,nosuid - fuse.pmfs /source %s')
        }
        """
            .formatted(mounted, mountpoint, option, option));

    Result result =
        run(
            List.of("BASH_ENV=" + table),
            "run",
            "--source=/source",
            "--mountpoint=" + mountpoint,
            "--",
            command);

    assertThat(result.status()).as(result.err()).isEqualTo(status);
  }

  /** A directory with the programs that the launcher starts, except one. */
  private Path pathWithout(String missing) throws IOException {
    Path directory = Files.createDirectory(temporary.resolve("programs"));
    for (String program : LAUNCHER_STARTS) {
      if (!program.equals(missing)) {
        Path file = directory.resolve(program);
        Files.writeString(file, "#!/bin/sh\nexec /usr/bin/%s \"$@\"\n".formatted(program), UTF_8);
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
      }
    }
    return directory;
  }

  @Test
  void libraries_forOtherProcessors_cannot() throws Exception {
    Path own = temporary.resolve("native/jni/" + PROCESSOR + "-Linux");
    assertThat(run(List.of("HOSTTYPE=sparcv9"), "status").status()).as("of a login node").isZero();

    Files.move(own, own.resolveSibling("sparcv9-Linux"));
    Result result = run("status");

    assertThat(result.status()).isEqualTo(5);
    assertThat(result.err())
        .contains("built for other processors; this machine is " + PROCESSOR)
        .hasLineCount(1);
  }

  @Test
  void notBuilt_saysHowToBuild() throws Exception {
    Files.delete(temporary.resolve("lib/mount-flags"));

    Result result = run("status");

    assertThat(result.status()).isEqualTo(5);
    assertThat(result.err()).contains("mvn -q -DskipTests package").hasLineCount(1);
  }

  /** The daemon's pools add up to this number: docs/decisions/0036. */
  @ParameterizedTest
  @CsvSource({
    "--foreground, 64",
    "--buffer-memory=100M, 100",
    "--buffer-memory 8MiB, 8",
    "--buffer-memory 1.5m, 2",
    "--buffer-memory 64G, 1024",
    "PMFS_BUFFER_MEMORY=2g, 1024",
    "PMFS_BUFFER_MEMORY=16777216, 16",
    "PMFS_BUFFER_MEMORY=nonsense, 64"
  })
  void mount_directMemory_isTheBuffersAndTheFixedSum(String option, int mebibytes)
      throws Exception {
    List<String> words = List.of(option.split(" "));
    List<String> variables = new ArrayList<>(List.of("HOME=/nowhere"));
    List<String> arguments = new ArrayList<>(List.of("mount", "/a", "/b", "--foreground"));
    (option.startsWith("PMFS") ? variables : arguments).addAll(words);

    assertDirectMemory(mebibytes, run(variables, arguments.toArray(String[]::new)));
  }

  private static void assertDirectMemory(int buffersMebibytes, Result result) {
    long bytes = DirectMemory.FIXED_BYTES + ((long) buffersMebibytes << 20);
    assertThat(result.out().lines())
        .contains("-XX:MaxDirectMemorySize=" + bytes, "-Dpmfs.directMemoryBytes=" + bytes);
  }

  @Test
  void mount_buffersInAFile_countWithTheLargestOfIt() throws Exception {
    Path file = temporary.resolve("pmfs.toml");
    Files.writeString(
        file, "buffer-memory = \"80M\"\n[mount.\"/b\"]\n buffer-memory = '96M' # x\n");

    assertDirectMemory(96, run("mount", "/a", "/b", "--foreground", "--config", file.toString()));
    assertDirectMemory(
        96, run(List.of("PMFS_CONFIG=" + file), "mount", "/a", "/b", "--foreground"));
    assertDirectMemory(
        9,
        run(
            List.of("PMFS_CONFIG=" + file),
            "mount",
            "/a",
            "/b",
            "--foreground",
            "--buffer-memory=9M"));
  }

  private void fakeJava(String script) throws IOException {
    Files.writeString(java, "#!/bin/bash\n" + script + "\n", UTF_8);
    Files.setPosixFilePermissions(java, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  private Result run(String... arguments) throws Exception {
    return run(List.of(), arguments);
  }

  private Result run(List<String> variables, String... arguments) throws Exception {
    Path err = temporary.resolve("err");
    Process process = builder(variables, arguments).redirectError(err.toFile()).start();
    String out = new String(process.getInputStream().readAllBytes(), UTF_8);
    assertThat(process.waitFor(30, TimeUnit.SECONDS)).isTrue();
    return new Result(process.exitValue(), out, Files.readString(err, UTF_8));
  }

  private Process start(String... arguments) throws IOException {
    return builder(List.of(), arguments).redirectErrorStream(true).start();
  }

  private ProcessBuilder builder(List<String> variables, String... arguments) {
    List<String> command =
        new ArrayList<>(
            List.of(
                "env", "-u", "JAVA_HOME", "PMFS_JAVA=" + java, "PMFS_RUNTIME_DIR=" + temporary));
    command.addAll(variables);
    command.add(launcher.toString());
    command.addAll(Arrays.asList(arguments));
    return NativeText.process(command);
  }

  /** The fake daemon, once it has executed {@code sleep}. */
  private static ProcessHandle process(Path pidFile) throws IOException {
    long pid = Long.parseLong(Files.readString(pidFile).strip());
    Path name = Path.of("/proc/" + pid + "/comm");
    Await.until("the daemon sleeps", () -> Files.readString(name).equals("sleep\n"));
    return ProcessHandle.of(pid).orElseThrow();
  }

  /** The bits of SIGINT and SIGQUIT in the process's SigIgn. */
  private static long ignoredSignals(ProcessHandle process) throws IOException {
    String line =
        Files.readAllLines(Path.of("/proc/" + process.pid() + "/status")).stream()
            .filter(l -> l.startsWith("SigIgn:"))
            .findFirst()
            .orElseThrow();
    return Long.parseUnsignedLong(line.substring(7).strip(), 16) & 0b110;
  }
}
