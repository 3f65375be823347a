package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.FileName;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.Place;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import io.pmfs.writable.WritableSettings;
import io.pmfs.writable.mount.WritableMount;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A writable mount over real directories: written files are at the source after a drain. */
class WritableDirectoriesTest {
  private static final long ROOT = WritableFileSystem.ROOT;
  private static final int NOBODY = 65534;
  private static final int WRITE_ONLY = OutputCalls.O_WRONLY;

  @TempDir Path directory;

  private Path source;
  private long unique;

  @BeforeEach
  void makeSource() throws Exception {
    source = Files.createDirectory(directory.resolve("source"));
  }

  private WritableMount open(boolean resumed) throws Exception {
    Place place = new Place("ssd", directory.resolve("outputs"), 1L << 30, 0);
    return WritableMount.open(
        new WritableSettings(
            source,
            directory.resolve("state"),
            List.of(place),
            new UUID(0, 1),
            resumed,
            0,
            false,
            "node1",
            32L << 20,
            WritableSettings.COPIERS,
            WritableSettings.PIECE_MILLIS,
            WritableSettings.FRESH_MILLIS,
            WritableSettings.KEPT_NAMES,
            WritableSettings.MOMENT_MILLIS,
            60_000),
        new LinuxOutputCalls());
  }

  private Caller caller() {
    int uid = LibC.INSTANCE.geteuid();
    return new Caller(unique += 2, uid, uid, 1);
  }

  private static FileName name(String text) {
    return FileName.of(text);
  }

  private static ByteBuffer bytes(String text) {
    byte[] bytes = text.getBytes(UTF_8);
    return ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
  }

  private void write(WritableMount mount, long parent, String file, String text) throws Exception {
    Opened opened = mount.create(parent, name(file), 0644, WRITE_ONLY, caller());
    long inode = opened.node().inode();
    mount.write(inode, opened.handle(), 0, bytes(text), false, false, caller());
    mount.flush(inode, opened.handle(), caller());
    mount.release(inode, opened.handle());
  }

  private static String read(WritableMount mount, long parent, String file) throws Exception {
    Node node = Objects.requireNonNull(mount.lookup(parent, name(file)));
    Text sink = new Text();
    mount.read(node.inode(), 0, 0, 1 << 16, sink);
    return sink.text;
  }

  private static final class Text implements ReadSink {
    private String text = "";

    @Override
    public ByteBuffer buffer(int size) {
      return ByteBuffer.allocateDirect(size);
    }

    @Override
    public void accept(ReadResult piece) throws IOException {
      ByteBuffer copy = ByteBuffer.allocate(piece.size());
      piece.copyTo(copy);
      text += new String(copy.array(), UTF_8);
    }
  }

  @Test
  void write_andDrain_isAtTheSource() throws Exception {
    Files.writeString(Files.createDirectory(source.resolve("old")).resolve("file"), "before");
    try (WritableMount mount = open(false)) {
      Node old = Objects.requireNonNull(mount.lookup(ROOT, name("old")));
      assertThat(read(mount, old.inode(), "file")).isEqualTo("before");
      Node made = mount.mkdir(ROOT, name("new"), 0755, caller());
      write(mount, made.inode(), "file", "hello");
      assertThat(read(mount, made.inode(), "file")).isEqualTo("hello");
      mount.rename(made.inode(), name("file"), old.inode(), name("moved"), 0, caller());
      assertThat(mount.lookup(made.inode(), name("file"))).isNull();
      mount.unlink(old.inode(), name("file"), caller());
      assertThat(mount.drain(20_000)).isTrue();
      assertThat(source.resolve("old/moved")).hasContent("hello");
      assertThat(source.resolve("old/file")).doesNotExist();
      assertThat(source.resolve("new")).isEmptyDirectory();
      assertThat(read(mount, old.inode(), "moved")).isEqualTo("hello");
      assertThat(mount.drainStatus().conflicts()).isZero();
      assertThat(mount.drainStatus().dirtyBytes()).isZero();
    }
  }

  @Test
  void reopen_afterClose_continues() throws Exception {
    try (WritableMount mount = open(false)) {
      write(mount, ROOT, "one", "1");
      Opened opened = mount.create(ROOT, name("two"), 0644, WRITE_ONLY, caller());
      mount.write(opened.node().inode(), opened.handle(), 0, bytes("22"), false, false, caller());
    }
    try (WritableMount mount = open(true)) {
      assertThat(read(mount, ROOT, "one")).isEqualTo("1");
      assertThat(read(mount, ROOT, "two")).isEqualTo("22");
      assertThat(mount.drain(1_000)).as("a program may have the second open").isFalse();
      assertThat(source.resolve("one")).hasContent("1");
      assertThat(source.resolve("two")).doesNotExist();
    }
    try (WritableMount mount = open(false)) {
      assertThat(mount.drain(20_000)).isTrue();
      assertThat(source.resolve("two")).hasContent("22");
    }
  }

  /** Promise 10: rights at the source are the writing user's. */
  @Test
  void files_ofAnotherUser_areMadeAsThatUser() throws Exception {
    assumeTrue(LibC.INSTANCE.geteuid() == 0, "needs root");
    Files.setPosixFilePermissions(source, PosixFilePermissions.fromString("rwxrwxrwx"));
    try (WritableMount mount = open(false)) {
      Caller user = new Caller(unique += 2, NOBODY, NOBODY, 1);
      Node made = mount.mkdir(ROOT, name("theirs"), 0700, user);
      Opened opened =
          mount.create(
              made.inode(),
              name("file"),
              0600,
              WRITE_ONLY,
              new Caller(unique += 2, NOBODY, NOBODY, 1));
      long inode = opened.node().inode();
      mount.write(inode, opened.handle(), 0, bytes("hello"), false, false, user);
      mount.flush(inode, opened.handle(), user);
      mount.release(inode, opened.handle());
      mount.symlink(
          made.inode(), name("link"), name("file"), new Caller(unique += 2, NOBODY, NOBODY, 1));
      assertThat(mount.drain(20_000)).isTrue();
      for (String path : List.of("theirs", "theirs/file", "theirs/link")) {
        assertThat(Files.getAttribute(source.resolve(path), "unix:uid", LinkOption.NOFOLLOW_LINKS))
            .isEqualTo(NOBODY);
      }
      Files.setPosixFilePermissions(source, PosixFilePermissions.fromString("rwxr-xr-x"));
      // The mount has allowed it, perhaps by a group of the process: then the daemon makes the
      // change itself.
      mount.mkdir(ROOT, name("given"), 0700, new Caller(unique += 2, NOBODY, NOBODY, 1));
      assertThat(mount.drain(20_000)).isTrue();
      assertThat(Files.getAttribute(source.resolve("given"), "unix:uid")).isEqualTo(NOBODY);
    }
  }

  /** A file opened before its mode forbade writing is still written. */
  @Test
  void file_whoseModeForbidsWriting_reachesSource() throws Exception {
    Files.setPosixFilePermissions(source, PosixFilePermissions.fromString("rwxrwxrwx"));
    int uid = LibC.INSTANCE.geteuid() == 0 ? NOBODY : LibC.INSTANCE.geteuid();
    try (WritableMount mount = open(false)) {
      Opened opened =
          mount.create(ROOT, name("file"), 0, OutputCalls.O_RDWR, new Caller(2, uid, uid, 1));
      long inode = opened.node().inode();
      Caller user = new Caller(0, uid, uid, 1);
      for (int i = 0; i < 3; i++) {
        mount.write(inode, opened.handle(), i, bytes("x"), false, false, user);
        mount.flush(inode, opened.handle(), user);
        assertThat(mount.drain(20_000)).isTrue();
      }
      mount.release(inode, opened.handle());
      assertThat(Files.size(source.resolve("file"))).isEqualTo(3);
    }
  }
}
