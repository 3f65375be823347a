package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Real shared file systems as sources: every byte, whatever they do with inode numbers. */
@OnRequest(value = "shared", what = "real shared file systems")
final class SharedFileSystemIT {
  private static final Duration LIFETIME = Duration.ofMinutes(Machine.isEmulated() ? 30 : 5);
  private static final Duration RECOVERY = Duration.ofMinutes(Machine.isEmulated() ? 10 : 2);

  private final Installation pmfs = new Installation();

  @SuppressWarnings("NullAway.Init")
  private SharedFileSystem shared;

  @SuppressWarnings("NullAway.Init")
  private Dataset dataset;

  private static Stream<SharedFileSystem.Kind> kinds() {
    return SharedFileSystem.Kind.here();
  }

  private static Stream<SharedFileSystem.Kind> kindsWithLinks() {
    return kinds().filter(SharedFileSystem.Kind::hasSymbolicLinks);
  }

  private void make(SharedFileSystem.Kind kind) {
    SharedFileSystem.require(kind);
    shared = new SharedFileSystem(kind);
    int[] sizes = Dataset.sizes(60, 30_000);
    sizes[0] = 0;
    sizes[1] = 1;
    sizes[2] = 5 << 20;
    sizes[3] = (1 << 20) + 1;
    dataset = Dataset.create(shared.root().resolve("data"), sizes);
  }

  @AfterEach
  void remove() {
    pmfs.close();
    if (shared != null) {
      shared.close();
    }
  }

  private MountedPmfs mount() {
    return pmfs.mount(LIFETIME, dataset.root());
  }

  @ParameterizedTest
  @MethodSource("kinds")
  void epochs_withInodesForgotten_haveTheSourcesBytes(SharedFileSystem.Kind kind) {
    make(kind);
    MountedPmfs mount = mount();
    for (int epoch = 0; epoch < 3; epoch++) {
      dataset.assertEqualBelow(mount.mountpoint());
      Machine.dropNames();
    }
    pmfs.run("stage", mount.mountpoint().toString()).expect(0);
    pmfs.run("stage", "--check", mount.mountpoint().toString()).expect(0);
    mount.close();
    shared.unmountClient();
    shared.mountClient();

    MountedPmfs again = mount();
    dataset.assertEqualBelow(again.mountpoint());
    assertThat(again.status().number("sourceOperations.bytes"))
        .as("copies are used after the source was mounted again")
        .isZero();
    pmfs.run("verify", again.mountpoint().toString()).expect(0);
  }

  /** As where memory is short: the kernel forgets data and inodes of the source all the time. */
  @ParameterizedTest
  @MethodSource("kinds")
  void reads_whileTheSourceIsForgotten_haveItsBytes(SharedFileSystem.Kind kind) throws Exception {
    make(kind);
    AtomicBoolean done = new AtomicBoolean();
    AtomicInteger rounds = new AtomicInteger();
    Thread pressure =
        new Thread(
            () -> {
              while (!done.get()) {
                forget();
                rounds.incrementAndGet();
              }
            },
            "pressure");
    MountedPmfs mount = mount();
    pressure.start();
    try {
      for (int epoch = 0; epoch < 3 || (rounds.get() < 5 && pressure.isAlive()); epoch++) {
        dataset.assertEqualBelow(mount.mountpoint());
      }
      assertThat(rounds.get()).as("times that it was forgotten").isGreaterThan(4);
      pmfs.run("verify", mount.mountpoint().toString()).expect(0);
    } finally {
      done.set(true);
      pressure.join(RECOVERY.toMillis());
    }
  }

  private void forget() {
    for (Dataset.Item item : dataset.items()) {
      Posix.check(Posix.forgetData(dataset.root().resolve(item.name()).toString()));
    }
    Machine.dropNames();
  }

  /** A reader may get an error meanwhile, but no other byte, and everything once they are back. */
  @ParameterizedTest
  @MethodSource("kinds")
  void servers_killedWhileFilesAreRead_spoilNothing(SharedFileSystem.Kind kind) throws Exception {
    make(kind);
    MountedPmfs mount = mount();
    AtomicInteger read = new AtomicInteger();
    AtomicInteger wrong = new AtomicInteger();
    Thread reader =
        new Thread(
            () -> {
              while (read.get() < 10 * dataset.items().size() && wrong.get() == 0) {
                for (Dataset.Item item : dataset.items()) {
                  readOnce(mount, item, read, wrong);
                }
              }
            },
            "reader");
    reader.setDaemon(true);
    reader.start();
    Await.until("some files were read", RECOVERY, () -> read.get() > dataset.items().size() / 3);
    shared.killServers();
    Thread.sleep(3_000);
    shared.startServers();
    Await.until(
        () -> "all is read again; the last status: " + mount.status(),
        RECOVERY,
        () -> wrong.get() > 0 || isReadWhole(mount));
    reader.join(RECOVERY.toMillis());
    assertThat(wrong.get()).isZero();
    assertThat(reader.isAlive()).as("the reader goes on").isFalse();
    dataset.assertEqualBelow(mount.mountpoint());
  }

  private static boolean readOnce(
      MountedPmfs mount, Dataset.Item item, AtomicInteger read, AtomicInteger wrong) {
    try {
      byte[] content = Files.readAllBytes(mount.mountpoint().resolve(item.name()));
      if (!Arrays.equals(content, item.content())) {
        wrong.incrementAndGet();
      }
      return true;
    } catch (IOException e) {
      // The source was away.
      return false;
    } finally {
      read.incrementAndGet();
    }
  }

  private boolean isReadWhole(MountedPmfs mount) {
    AtomicInteger wrong = new AtomicInteger();
    boolean all = true;
    for (Dataset.Item item : dataset.items()) {
      all &= readOnce(mount, item, new AtomicInteger(), wrong);
    }
    assertThat(wrong.get()).isZero();
    return all;
  }

  @ParameterizedTest
  @MethodSource("kindsWithLinks")
  void listings_linksAndAttributes_areTheSources(SharedFileSystem.Kind kind) throws Exception {
    make(kind);
    Path some = dataset.root().resolve(dataset.items().get(5).name());
    Path link = dataset.root().resolve("symbolic");
    Files.createSymbolicLink(link, Path.of("part-000"));
    if (kind.hasHardLinks()) {
      Files.createLink(dataset.root().resolve("hard"), some);
    }
    if (kind.hasExtendedAttributes()) {
      Command.run("setfattr", "-n", "user.class", "-v", "7", some.toString()).expect(0);
    }
    MountedPmfs mount = mount();
    String list = "cd \"$1\" && find . -printf '%y %m %U %G %s %n %T@ %l %p\\n' | sort";
    String direct = Command.run("sh", "-c", list, "-", dataset.root().toString()).expect(0).out();
    String through =
        Command.run("sh", "-c", list, "-", mount.mountpoint().toString()).expect(0).out();
    // Directories have sizes and link counts of their own.
    assertThat(filesOf(through)).isEqualTo(filesOf(direct));
    String names = "cd \"$1\" && getfattr -R -d -m user -- . | sort";
    assertThat(Command.run("sh", "-c", names, "-", mount.mountpoint().toString()).out())
        .isEqualTo(Command.run("sh", "-c", names, "-", dataset.root().toString()).out());
    if (kind.hasExtendedAttributes()) {
      assertThat(Command.run("sh", "-c", names, "-", mount.mountpoint().toString()).out())
          .contains("user.class=\"7\"");
    }
    if (kind.hasHardLinks()) {
      assertThat(mount.mountpoint().resolve("hard"))
          .hasBinaryContent(dataset.items().get(5).content());
      assertThat(Files.getAttribute(mount.mountpoint().resolve("hard"), "unix:nlink")).isEqualTo(2);
    }
  }

  private static String filesOf(String list) {
    return list.lines().filter(line -> !line.startsWith("d ")).reduce("", (a, b) -> a + "\n" + b);
  }
}
