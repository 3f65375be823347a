package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A directory of another user as root sees it; needs root. */
@Timeout(60)
final class StrangersDirectoryTest {
  private static final int ADA = 4711;

  @TempDir private Path temporary;
  private Path ofAda;

  @BeforeEach
  void make() throws IOException {
    assumeTrue(LibC.INSTANCE.geteuid() == 0, "needs root");
    ofAda = give(Files.createDirectory(temporary.resolve("ada")));
  }

  private static Path give(Path path) throws IOException {
    return Files.setAttribute(path, "unix:uid", ADA, LinkOption.NOFOLLOW_LINKS);
  }

  private static void run(Object... command) throws Exception {
    String[] words = new String[command.length];
    for (int i = 0; i < words.length; i++) {
      words[i] = command[i].toString();
    }
    assertThat(new ProcessBuilder(words).inheritIO().start().waitFor()).isZero();
  }

  private String read(String name) throws IOException {
    try (StrangersDirectory directory = StrangersDirectory.open(ofAda, ADA);
        StrangersDirectory.OpenFile file = directory.open(name)) {
      return new String(file.read(0, 100), UTF_8);
    }
  }

  private boolean isLocked(String name) throws IOException {
    try (StrangersDirectory directory = StrangersDirectory.open(ofAda, ADA);
        StrangersDirectory.OpenFile file = directory.open(name)) {
      return file.isLocked();
    }
  }

  @Test
  void open_fileOfTheUser_isRead() throws Exception {
    give(Files.writeString(ofAda.resolve("x"), "text"));
    assertThat(read("x")).isEqualTo("text");
    assertThatThrownBy(() -> read("absent")).isInstanceOf(NoSuchFileException.class);
  }

  @Test
  void open_whatIsNoFileOfTheUsersAlone_isRefusedAtOnce() throws Exception {
    Path secret = Files.writeString(temporary.resolve("secret"), "of root");
    give(Files.createSymbolicLink(ofAda.resolve("link"), secret));
    Files.createLink(ofAda.resolve("hard"), secret);
    run("mkfifo", ofAda.resolve("fifo"));
    give(ofAda.resolve("fifo"));
    run("mknod", ofAda.resolve("device"), "c", "1", "5");
    give(ofAda.resolve("device"));
    give(Files.createDirectory(ofAda.resolve("directory")));
    give(Files.writeString(ofAda.resolve("twice"), "x"));
    Files.createLink(ofAda.resolve("again"), ofAda.resolve("twice"));

    for (String name :
        new String[] {"link", "hard", "fifo", "device", "directory", "twice", "..", "a/b", ""}) {
      assertThatThrownBy(() -> read(name)).as(name).isInstanceOf(IOException.class);
    }
  }

  @Test
  void open_fileFlippedToAFifoAndALink_isTheFileOrRefused() throws Exception {
    Path secret = Files.writeString(temporary.resolve("secret"), "of root");
    Path flipped = ofAda.resolve("x");
    Path next = ofAda.resolve("next");
    AtomicBoolean ends = new AtomicBoolean();
    run("mkfifo", ofAda.resolve("fifo"));
    Thread flips =
        new Thread(
            () -> {
              try {
                for (int i = 0; !ends.get(); i++) {
                  if (i % 3 == 0) {
                    give(Files.writeString(next, "text"));
                  } else if (i % 3 == 1) {
                    Files.createSymbolicLink(next, secret);
                  } else {
                    Files.deleteIfExists(next);
                    Files.move(ofAda.resolve("fifo"), next);
                  }
                  Files.move(next, flipped, StandardCopyOption.ATOMIC_MOVE);
                  if (i % 3 == 2) {
                    Files.move(flipped, ofAda.resolve("fifo"));
                  }
                }
              } catch (IOException e) {
                ends.set(true);
              }
            });
    flips.start();
    int refused = 0;
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(3);
    while (System.nanoTime() < end && !ends.get()) {
      try {
        assertThat(read("x")).isEqualTo("text");
      } catch (IOException e) {
        refused++;
      }
    }
    assertThat(ends).isFalse();
    ends.set(true);
    flips.join();
    assertThat(refused).isPositive();
  }

  @Test
  void open_directoryOfAnotherOrALink_isRefused() throws Exception {
    Path other = Files.createDirectory(temporary.resolve("other"));
    Path link = give(Files.createSymbolicLink(temporary.resolve("link"), ofAda));

    assertThatThrownBy(() -> StrangersDirectory.open(other, ADA)).isInstanceOf(IOException.class);
    assertThatThrownBy(() -> StrangersDirectory.open(link, ADA)).isInstanceOf(IOException.class);
  }

  @Test
  void open_mountPoint_isRefused() throws Exception {
    Path inside = give(Files.writeString(ofAda.resolve("x"), "text"));
    run("mount", "-n", "--bind", inside, inside);
    try {
      assertThatThrownBy(() -> read("x")).hasMessageContaining("a mount point");
    } finally {
      run("umount", "-n", inside);
    }
    run("mount", "-n", "--bind", ofAda, ofAda);
    try {
      assertThatThrownBy(() -> read("x")).hasMessageContaining("a mount point");
    } finally {
      run("umount", "-n", ofAda);
    }
  }

  /** Locks a file until its input ends. */
  static final class Holder {
    private Holder() {}

    /** Takes the file's path. */
    public static void main(String[] arguments) throws IOException {
      try (FileChannel file = FileChannel.open(Path.of(arguments[0]), StandardOpenOption.WRITE)) {
        System.out.println(file.lock().isValid() ? "held" : "not held");
        assertThat(System.in.read()).isNegative();
      }
    }
  }

  @Test
  void isLocked_lockOfAnotherProcess_isSeen() throws Exception {
    give(Files.createFile(ofAda.resolve("lock")));
    assertThat(isLocked("lock")).isFalse();
    Process holder =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin/java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                Holder.class.getName(),
                ofAda.resolve("lock").toString())
            .start();
    try {
      assertThat(holder.inputReader().readLine()).isEqualTo("held");
      assertThat(isLocked("lock")).isTrue();
    } finally {
      holder.destroy();
      holder.waitFor();
    }
    assertThat(isLocked("lock")).isFalse();
  }

  @Test
  void has_socketOfTheUser_noLink() throws Exception {
    give(Files.createFile(ofAda.resolve("x")));
    give(Files.createSymbolicLink(ofAda.resolve("link"), ofAda.resolve("x")));
    Files.createFile(ofAda.resolve("of-root"));
    try (StrangersDirectory directory = StrangersDirectory.open(ofAda, ADA)) {
      assertThat(directory.has("x")).isTrue();
      assertThat(directory.has("link")).isFalse();
      assertThat(directory.has("of-root")).isFalse();
      assertThat(directory.has("absent")).isFalse();
      assertThat(directory.names(2)).hasSize(2);
    }
  }
}
