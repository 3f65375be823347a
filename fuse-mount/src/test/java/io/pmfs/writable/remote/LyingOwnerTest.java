package io.pmfs.writable.remote;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.fuse.system.LinuxOutputCalls;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.FsException;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.Place;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.AtSource;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Entry;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import io.pmfs.writable.journal.Stat;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A node whose owner returns false answers: what the node then shows of its own source. */
class LyingOwnerTest {
  private static final long FILE = 2;
  private static final int USER = 65_534;

  /** An id in the form of mount ids. */
  private static final String GOOD = "1234abcd";

  @TempDir Path directory;
  private final OutputCalls calls = new LinuxOutputCalls();

  /** The owner's answers, by the name of the request. */
  private final Map<String, Consumer<MessageWriter>> answers = new HashMap<>();

  private String mount = GOOD;
  private boolean isSilent;
  private boolean isJoined;
  private @Nullable WritableFileSystem remote;

  @BeforeEach
  void make() throws Exception {
    assumeTrue(ProcessHandle.current().info().user().orElse("").equals("root"), "needs root");
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
    for (String name : List.of("source/open", "source/closed", "outside", "node")) {
      Files.createDirectories(directory.resolve(name));
    }
    for (String name :
        List.of("source/open/public", "source/open/private", "source/closed/f", "outside/f")) {
      Files.writeString(directory.resolve(name), "the content");
    }
    chmod("source/closed", "rwx------");
    chmod("source/open/private", "rw-------");
    Files.createSymbolicLink(directory.resolve("source/up"), Path.of("../outside"));
    answers.put("drainStatus", out -> out.status(DrainStatus.NONE).flag(false).flag(false));
  }

  private void chmod(String path, String mode) throws IOException {
    Files.setPosixFilePermissions(directory.resolve(path), PosixFilePermissions.fromString(mode));
  }

  @AfterEach
  void close() {
    if (remote != null) {
      remote.close();
    }
  }

  private byte[] answer(String name) throws IOException {
    if (isSilent) {
      throw new IOException("it is silent");
    }
    if (name.equals("join")) {
      isJoined = mount.equals(GOOD);
      return Message.sealed(Message.answer(Message.Kind.RESULT).small(7).text(mount));
    }
    if (!isJoined) {
      return Message.sealed(Message.answer(Message.Kind.NOT_JOINED));
    }
    MessageWriter out = Message.answer(Message.Kind.RESULT);
    Objects.requireNonNull(answers.get(name), name).accept(out);
    return Message.sealed(out);
  }

  private WritableFileSystem join() throws FsException {
    NodeFiles files =
        new NodeFiles(
            List.of(new Place("ssd", directory.resolve("node"), 1L << 30, 0)),
            directory.resolve("source"),
            calls,
            InstantSource.system());
    OwnerLink link =
        new OwnerLink() {
          @Override
          public byte[] ask(String name, byte[] body) throws IOException {
            return answer(name);
          }

          @Override
          public String owner() {
            return "owner";
          }
        };
    WritableFileSystem made =
        RemoteFileSystem.join(
            link,
            new RemoteFileSystem.Self(
                new UUID(1, 2), "node", new UUID(0, 9), directory.resolve("source"), calls, files),
            false,
            Duration.ofMillis(100),
            100);
    remote = made;
    return made;
  }

  private Stat stat(String path) throws FsException {
    int slash = path.lastIndexOf('/');
    int in = calls.openRoot(directory.resolve(path.substring(0, slash)));
    try {
      return calls.status(in, FileName.of(path.substring(slash + 1)));
    } finally {
      calls.close(in);
    }
  }

  /** The attributes of a file, with another mode. */
  private Node shown(long inode, String path, int mode) throws FsException {
    Attributes a = stat(path).attributes();
    return new Node(inode, a.withMode((a.mode() & ~07777) | mode));
  }

  private static final class Text implements ReadSink {
    private final StringBuilder text = new StringBuilder();

    @Override
    public ByteBuffer buffer(int size) {
      return ByteBuffer.allocateDirect(size);
    }

    @Override
    public void accept(ReadResult piece) throws IOException {
      ByteBuffer bytes = ByteBuffer.allocate(piece.size());
      piece.copyTo(bytes);
      text.append(new String(bytes.array(), StandardCharsets.UTF_8));
    }
  }

  /** The content that a user reads from a file that the owner claims is at the source. */
  private String read(WritableFileSystem from, Opened opened, int uid) throws FsException {
    answers.put("openHere", out -> out.opened(opened));
    answers.put("read", out -> out.text("asked"));
    answers.put("release", out -> {});
    Opened file = from.open(FILE, OutputCalls.O_RDONLY, new Caller(2, uid, uid, 1));
    Text text = new Text();
    from.read(FILE, file.handle(), 0, 100, text);
    from.release(FILE, file.handle());
    return text.text.toString();
  }

  @ParameterizedTest
  @CsvSource({
    // The file, the mode that the owner reports, what a user reads: "asked" is the owner's own
    // answer.
    "open/public, 420, the content",
    "open/public, 511, asked",
    "open/private, 420, asked",
    "open/private, 384, asked",
    "closed/f, 420, asked",
  })
  void user_readsAtTheSource_whatTheSourcePermits(String path, int mode, String text)
      throws Exception {
    String place = "source/" + path;
    FileName in = FileName.of(path.substring(0, path.indexOf('/')));
    FileName name = FileName.of(path.substring(path.indexOf('/') + 1));
    WritableFileSystem node = join();
    Opened opened =
        new Opened(
            shown(FILE, place, mode), 5, false, 0, new AtSource(in, name, stat(place).inode()));
    assertThat(read(node, opened, USER)).isEqualTo(text);
  }

  /** Another user has the same file open, already at the source. */
  @Test
  void user_ofAFileThatAnotherReads_readsNoMore() throws Exception {
    WritableFileSystem node = join();
    AtSource place =
        new AtSource(FileName.of("closed"), FileName.of("f"), stat("source/closed/f").inode());
    Opened first = new Opened(shown(FILE, "source/closed/f", 0644), 5, false, 0, place);
    answers.put("openHere", out -> out.opened(first));
    answers.put("read", out -> out.text("asked"));
    answers.put("release", out -> {});
    node.open(FILE, OutputCalls.O_RDONLY, new Caller(2, 0, 0, 1));
    Text roots = new Text();
    node.read(FILE, 5, 0, 100, roots);
    assertThat(roots.text.toString()).isEqualTo("the content");
    Opened opened = new Opened(shown(FILE, "source/closed/f", 0644), 6, false, 0, place);
    assertThat(read(node, opened, USER)).isEqualTo("asked");
  }

  @ParameterizedTest
  @CsvSource({
    "..,outside",
    "../outside,f",
    "/,f",
    "up,f",
    "open/../../outside,f",
    "'',../outside/f"
  })
  void place_outsideTheSource_isNotOpened(String in, String name) throws Exception {
    assertThatThrownBy(
            () -> {
              AtSource place =
                  new AtSource(FileName.of(in), FileName.of(name), stat("outside/f").inode());
              WritableFileSystem node = join();
              Opened opened = new Opened(shown(FILE, "outside/f", 0644), 5, false, 0, place);
              assertThat(read(node, opened, 0)).isEqualTo("asked");
              throw new IllegalArgumentException("it was asked");
            })
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** Reading of an open file continues at the source, for users who may read it there. */
  @ParameterizedTest
  @CsvSource({"open, public, true", "closed, f, false", "open, private, false"})
  void whileTheOwnerIsSilent_theSourceDecides(String in, String name, boolean isRead)
      throws Exception {
    WritableFileSystem node = join();
    String path = "source/" + in + "/" + name;
    AtSource place = new AtSource(FileName.of(in), FileName.of(name), stat(path).inode());
    Opened opened = new Opened(shown(FILE, path, 0644), 5, false, 0, place);
    answers.put("openHere", out -> out.opened(opened));
    node.open(FILE, OutputCalls.O_RDONLY, new Caller(2, USER, USER, 1));
    isSilent = true;
    Text text = new Text();
    try {
      node.read(FILE, 5, 0, 100, text);
    } catch (FsException e) {
      assertThat(isRead).isFalse();
    }
    assertThat(text.text.toString()).isEqualTo(isRead ? "the content" : "");
  }

  @ParameterizedTest
  @ValueSource(strings = {"../../outside", "/etc", "", "a/b"})
  void mount_withAnIdThatIsAPath_isNotUsed(String id) {
    mount = id;
    assertThatThrownBy(this::join).isInstanceOf(FsException.class);
    assertThat(directory.resolve("node")).isEmptyDirectory();
  }

  @Test
  void names_thatLeadOutside_areNotListed() throws Exception {
    WritableFileSystem node = join();
    for (String bad : List.of("..", ".", "", "a/b", "/", "x\0y")) {
      Entry entry = new Entry(FileName.of(bad), 4, FileType.REGULAR, 1);
      answers.put("list", out -> out.list(List.of(entry), MessageWriter::entry));
      List<Entry> seen = new ArrayList<>();
      assertThatThrownBy(() -> node.list(WritableFileSystem.ROOT, 0, seen::add))
          .isInstanceOf(FsException.class);
      assertThat(seen).isEmpty();
    }
  }

  @Test
  void read_ofMoreThanWasAskedFor_fails() throws Exception {
    WritableFileSystem node = join();
    answers.put("read", out -> out.bytes(new byte[101]));
    assertThatThrownBy(() -> node.read(FILE, 9, 0, 100, new Text()))
        .isInstanceOf(FsException.class);
  }
}
