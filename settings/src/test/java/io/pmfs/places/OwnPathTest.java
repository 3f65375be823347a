package io.pmfs.places;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.LinkOption.NOFOLLOW_LINKS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.machine.Reason;
import io.pmfs.machine.UserNamespace;
import java.io.IOException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Needs root, to create directories for other users. */
final class OwnPathTest {
  private static final int NOBODY = 65534;
  private static final int ADA = 64_711;
  private static final int BOB = 64_712;

  /** A group without an entry, which cannot be a user's private group. */
  private static final int GROUP = 64_713;

  private static final String PATH = "a/b/c/d";
  private static final int DEPTH = 4;

  @TempDir private Path temporary;
  private Path top = Path.of("unset");
  private Path outside = Path.of("unset");

  @BeforeEach
  void makeDirectories() throws IOException {
    assumeTrue(
        (Integer) Files.getAttribute(Path.of("/proc/self"), "unix:uid") == 0, "not run by root");
    top = Files.createDirectory(temporary.toRealPath().resolve("top"));
    outside = Files.createDirectory(top.resolveSibling("outside"));
    Files.writeString(outside.resolve("canary"), "unharmed");
    Files.createDirectory(outside.resolve("below"));
  }

  private static OwnPath of(int uid) {
    return new OwnPath(uid, uid == 0 ? "root" : "user" + uid, 0);
  }

  /** The methods to test, by the kind of file that they check. */
  @SuppressWarnings("ImmutableEnumChecker") // references to methods
  private enum Check {
    CHECK(OwnPath::check),
    DIRECTORY(OwnPath::directory),
    SHARED_DIRECTORY(OwnPath::sharedDirectory),
    EXISTING(OwnPath::existing),
    FILLED_DIRECTORY(OwnPath::filledDirectory),
    FILE(OwnPath::file),
    REPLACEABLE_FILE(OwnPath::replaceableFile);

    private final Method method;

    Check(Method method) {
      this.method = method;
    }

    private interface Method {
      Path of(OwnPath own, Path path) throws IOException;
    }

    boolean isOfFile() {
      return this == FILE || this == REPLACEABLE_FILE;
    }

    boolean makes() {
      return this == DIRECTORY || this == SHARED_DIRECTORY || this == FILLED_DIRECTORY;
    }
  }

  /** Actions of another user who could write in the component's directory before. */
  private enum Attack {
    MAKES_IT {
      @Override
      void on(Path component, Path outside, int attacker) throws IOException {
        chown(component, attacker);
      }
    },
    EVERYBODY_WRITES {
      @Override
      void on(Path component, Path outside, int attacker) throws IOException {
        chmod(component, Files.isDirectory(component) ? 0777 : 0666);
      }
    },
    A_GROUP_WRITES {
      @Override
      void on(Path component, Path outside, int attacker) throws IOException {
        Files.setAttribute(component, "unix:gid", GROUP);
        chmod(component, Files.isDirectory(component) ? 0775 : 0664);
      }
    },
    LINKS_IT {
      @Override
      void on(Path component, Path outside, int attacker) throws IOException {
        Files.move(component, outside.resolveSibling("moved"));
        Files.createSymbolicLink(component, outside);
        chown(component, attacker);
      }
    },
    MAKES_A_FIFO {
      @Override
      void on(Path component, Path outside, int attacker) throws IOException {
        Files.move(component, outside.resolveSibling("moved"));
        run("mkfifo", component.toString());
      }
    };

    abstract void on(Path component, Path outside, int attacker) throws IOException;
  }

  static Stream<Arguments> attacks() {
    List<Arguments> all = new ArrayList<>();
    for (int uid : new int[] {0, NOBODY, ADA}) {
      for (Check check : Check.values()) {
        for (Attack attack : Attack.values()) {
          for (int component = 1; component <= DEPTH; component++) {
            all.add(Arguments.of(uid, check, attack, component));
          }
        }
      }
    }
    return all.stream();
  }

  @ParameterizedTest
  @MethodSource("attacks")
  void path_componentOfAnotherUser_isRefusedAndNothingIsTouched(
      int uid, Check check, Attack attack, int component) throws IOException {
    Path path = makeTree(uid, check);
    Path attacked = top.resolve(Path.of(PATH).subpath(0, component));
    attack.on(attacked, outside, uid == BOB ? ADA : BOB);
    Map<String, String> before = snapshot();

    assertThatThrownBy(() -> check.method.of(of(uid), path))
        .isInstanceOf(IOException.class)
        .satisfies(
            e ->
                assertThat(Reason.of((IOException) e))
                    .containsAnyOf(attacked.toString(), "not a ", "neither a file"));

    assertThat(snapshot()).isEqualTo(before);
  }

  @ParameterizedTest
  @EnumSource(Check.class)
  void path_ofTheUserAndOfRoot_isAccepted(Check check) throws IOException {
    for (int uid : new int[] {0, NOBODY, ADA}) {
      Path path = makeTree(uid, check);
      chown(top.resolve("a/b"), 0);
      assertThat(check.method.of(of(uid), path)).isEqualTo(path);
      run("rm", "-r", top.resolve("a").toString());
    }
  }

  @ParameterizedTest
  @EnumSource(Check.class)
  void path_belowAStickyDirectory_isAccepted(Check check) throws IOException {
    Path path = makeTree(ADA, check);
    chmod(top.resolve("a"), 01777);
    chown(top.resolve("a"), 0);

    assertThat(check.method.of(of(ADA), path)).isEqualTo(path);
    chown(top.resolve("a"), BOB); // the owner of a sticky directory can replace its entries
    assertThatThrownBy(() -> check.method.of(of(ADA), path)).isInstanceOf(NotOwnException.class);
  }

  @ParameterizedTest
  @EnumSource(Check.class)
  void path_linksOfRootAndTheUser_areFollowed(Check check) throws IOException {
    Path path = makeTree(ADA, check);
    Files.move(top.resolve("a/b"), top.resolve("real"));
    Files.createSymbolicLink(top.resolve("a/b"), Path.of("../a/../again"));
    Files.createSymbolicLink(top.resolve("again"), top.resolve("real"));
    chown(top.resolve("again"), ADA);

    assertThat(check.method.of(of(ADA), path)).isEqualTo(top.resolve("real/c/d"));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, NOBODY, ADA})
  void path_missing_isMadeForTheUserAloneOrNotAtAll(int uid) throws IOException {
    Path path = top.resolve(PATH);
    for (Check check : Check.values()) {
      assertThat(check.method.of(of(0), path)).isEqualTo(path);
      assertThat(Files.exists(path)).as("%s", check).isEqualTo(check.makes());
      if (check.makes()) {
        assertThat((Integer) Files.getAttribute(path, "unix:mode") & 07777).isEqualTo(0700);
      }
      run("rm", "-rf", top.resolve("a").toString());
    }
    assertThat(of(uid).check(path)).isEqualTo(path);
  }

  @Test
  void directory_stickyItself_isForThoseWhoCheckTheirEntries() throws IOException {
    chmod(top, 01777);

    assertThat(of(ADA).sharedDirectory(top)).isEqualTo(top);
    assertThat(of(ADA).check(top)).isEqualTo(top);
    for (Check check : List.of(Check.DIRECTORY, Check.EXISTING, Check.FILLED_DIRECTORY)) {
      assertThatThrownBy(() -> check.method.of(of(ADA), top))
          .isInstanceOf(NotOwnException.class)
          .hasMessageContaining("others can make files in " + top);
    }
    assertThatThrownBy(() -> of(ADA).replaceableFile(top.resolve("x.log")))
        .isInstanceOf(NotOwnException.class);
    assertThat(of(ADA).file(top.resolve("new.pool"))).isEqualTo(top.resolve("new.pool"));
  }

  @Test
  void group_ofTheUsersOwn_mayWrite() throws IOException {
    // Root's group is trusted on a machine where it has no other members.
    Files.setAttribute(top, "unix:gid", 0);
    chmod(top, 0775);
    assertThat(of(0).directory(top)).isEqualTo(top);
    assertThat(of(ADA).directory(top)).isEqualTo(top);
    Files.setAttribute(top, "unix:gid", 1); // of a user who exists: daemon

    assertThat(new OwnPath(1, "daemon", 0).directory(top)).isEqualTo(top);
    assertThatThrownBy(() -> of(ADA).directory(top))
        .isInstanceOf(NotOwnException.class)
        .hasMessageContaining("group daemon can write in " + top + " (mode 0775;");
  }

  @Test
  void accessList_thatLetsAnotherUserWrite_isRefused() throws IOException {
    Path list = Files.createDirectory(top.resolve("list"));
    assumeTrue(
        tryRun("setfacl", "-m", "u:" + ADA + ":rwx", list.toString()), "no setfacl, or no lists");

    assertThat(of(ADA).directory(list)).isEqualTo(list);
    assertThatThrownBy(() -> of(BOB).directory(list))
        .isInstanceOf(NotOwnException.class)
        .hasMessageContaining("user " + ADA + " can write in " + list);
    run("setfacl", "-m", "u:" + ADA + ":r-x", list.toString());
    assertThat(of(BOB).directory(list)).isEqualTo(list);
  }

  @Test
  void filledDirectory_contentOfAnotherUser_isRefused() throws IOException {
    Path directory = Files.createDirectories(top.resolve("a"));
    Files.createDirectories(directory.resolve("copies/00"));
    Path link = Files.createSymbolicLink(directory.resolve("source"), outside.resolve("canary"));
    assertThat(of(0).filledDirectory(directory)).as("the user's own link").isEqualTo(directory);

    chown(link, BOB);
    assertThatThrownBy(() -> of(0).filledDirectory(directory))
        .hasMessageContaining(link + " belongs to user " + BOB);
    Files.delete(link);
    chown(directory.resolve("copies/00"), BOB);
    assertThatThrownBy(() -> of(0).filledDirectory(directory)).hasMessageContaining("copies/00");
    chown(directory.resolve("copies/00"), 0);
    chmod(directory.resolve("copies"), 0777);
    assertThatThrownBy(() -> of(0).filledDirectory(directory)).hasMessageContaining("copies (mode");
  }

  @Test
  void resolve_followsOnlyWhatNobodyElseMade() throws IOException {
    Path link = Files.createSymbolicLink(top.resolve("link"), outside);
    assertThat(of(ADA).resolve(link.resolve("x/y"))).isEqualTo(outside.resolve("x/y"));
    Path open = Files.createDirectory(top.resolve("open"));
    chmod(open, 0777);
    assertThat(of(ADA).resolve(open.resolve("x"))).as("no link").isEqualTo(open.resolve("x"));
    Files.createSymbolicLink(open.resolve("link"), outside);

    assertThatThrownBy(() -> of(ADA).resolve(open.resolve("link/x")))
        .isInstanceOf(NotOwnException.class)
        .hasMessageContaining("everybody can write in " + open);
    chown(link, BOB);
    assertThatThrownBy(() -> of(ADA).resolve(link))
        .isInstanceOf(NotOwnException.class)
        .hasMessageContaining(link + " belongs to user " + BOB);
  }

  @Test
  void links_inACircle_end() throws IOException {
    Path link = Files.createSymbolicLink(top.resolve("link"), Path.of("link"));

    assertThatThrownBy(() -> of(0).directory(link)).isInstanceOf(FileSystemLoopException.class);
    assertThat(of(0).resolve(link)).isEqualTo(link);
  }

  @Test
  void namespace_withoutRoot_showsRootAsNobody() throws IOException {
    assertThat(UserNamespace.of(List.of("         0          0 4294967295"), "65534").root())
        .isZero();
    assertThat(UserNamespace.of(List.of("0 1000 1", "1 100000 65536"), "65534").root())
        .isEqualTo(NOBODY);
    assertThat(UserNamespace.of(List.of("1000 0 1"), "65534").root()).isEqualTo(1000);
    OwnPath own = new OwnPath(ADA, "ada", NOBODY);
    chown(top, NOBODY);
    assertThat(own.check(top)).as("only root makes entries above it").isEqualTo(top);

    chmod(top, 01777);
    Path entry = Files.createDirectory(top.resolve("entry"));
    chown(entry, NOBODY);
    assertThatThrownBy(() -> own.check(entry)).as("anybody's").isInstanceOf(NotOwnException.class);
    chown(entry, ADA);
    assertThat(own.directory(entry)).isEqualTo(entry);
  }

  /** Prints the id as which root appears in its process's namespace. */
  static final class Namespace {
    private Namespace() {}

    public static void main(String[] arguments) throws IOException {
      System.out.print(UserNamespace.ofProcess().root());
    }
  }

  @Test
  void namespace_ofAProcess_isReadFromTheKernel() throws Exception {
    assumeTrue(tryRun("unshare", "-U", "true"), "no user namespaces here");
    Process process =
        new ProcessBuilder(
                "unshare",
                "-U",
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                Namespace.class.getName())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    assertThat(new String(process.getInputStream().readAllBytes(), UTF_8)).isEqualTo("" + NOBODY);
    assertThat(process.waitFor()).isZero();
    assertThat(UserNamespace.ofProcess().root()).isZero();
  }

  /** Another user may win or lose the race for the name; root always gets a directory of root. */
  @Test
  void directory_nameThatAnotherSwapsAllTheTime_isRootsOrRefused() throws Exception {
    chmod(temporary.toRealPath(), 0755);
    chmod(top, 01777);
    Path path = top.resolve("name");
    String swap =
        "while :; do ln -s '%s' name; rm -f name; mkdir -m 777 name; rmdir name; done 2>/dev/null";
    Process attacker =
        new ProcessBuilder(
                "setpriv",
                "--reuid=" + BOB,
                "--regid=" + BOB,
                "--clear-groups",
                "sh",
                "-c",
                swap.formatted(outside))
            .directory(top.toFile())
            .start();
    int made = 0;
    int refused = 0;
    try {
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
      while ((made < 20 || refused < 20) && System.nanoTime() < end) {
        try {
          Path directory = of(0).directory(path);
          assertThat((Integer) Files.getAttribute(directory, "unix:uid", NOFOLLOW_LINKS)).isZero();
          assertThat(directory).isEqualTo(path);
          Files.writeString(directory.resolve("written"), "by root");
          Files.delete(directory.resolve("written"));
          Files.delete(directory);
          made++;
        } catch (IOException e) {
          refused++;
        }
      }
    } finally {
      attacker.destroyForcibly().waitFor();
    }
    assertThat(made).isPositive();
    assertThat(refused).isPositive();
    assertThat(Files.readString(outside.resolve("canary"))).isEqualTo("unharmed");
    assertThat(outside.toFile().list()).containsExactlyInAnyOrder("canary", "below");
  }

  private Path makeTree(int uid, Check check) throws IOException {
    Path path = top.resolve(PATH);
    Files.createDirectories(check.isOfFile() ? path.getParent() : path);
    if (check.isOfFile()) {
      Files.createFile(path);
    }
    for (int i = 1; i <= DEPTH; i++) {
      chown(top.resolve(Path.of(PATH).subpath(0, i)), uid);
    }
    return path;
  }

  /** Everything below, with owner, mode and content. */
  private Map<String, String> snapshot() throws IOException {
    Map<String, String> all = new TreeMap<>();
    try (Stream<Path> files = Files.walk(top.getParent())) {
      for (Path file : files.toList()) {
        all.put(
            file.toString(),
            Files.readAttributes(file, "unix:uid,gid,mode,size,ctime", NOFOLLOW_LINKS).toString());
      }
    }
    return all;
  }

  private static void chown(Path path, int uid) throws IOException {
    Files.setAttribute(path, "unix:uid", uid, NOFOLLOW_LINKS);
  }

  private static void chmod(Path path, int mode) throws IOException {
    Files.setAttribute(path, "unix:mode", mode);
  }

  private static void run(String... line) {
    assertThat(tryRun(line)).as("%s", List.of(line)).isTrue();
  }

  private static boolean tryRun(String... line) {
    @Nullable Process process = null;
    try {
      process = new ProcessBuilder(line).redirectErrorStream(true).start();
      return process.waitFor(20, TimeUnit.SECONDS) && process.exitValue() == 0;
    } catch (IOException e) {
      return false;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } finally {
      if (process != null) {
        process.destroy();
      }
    }
  }
}
