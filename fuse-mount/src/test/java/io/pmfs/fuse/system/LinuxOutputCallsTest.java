package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.journal.Stat;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LinuxOutputCallsTest {
  private static final FileName NONE = FileName.of("");

  @TempDir Path directory;

  private final LinuxOutputCalls calls = new LinuxOutputCalls();
  private int root;

  @BeforeEach
  void open() throws Exception {
    root = calls.openRoot(directory);
  }

  @AfterEach
  void close() {
    calls.close(root);
  }

  private static FileName name(String text) {
    return FileName.of(text);
  }

  private static ByteBuffer bytes(String text) {
    byte[] bytes = text.getBytes(UTF_8);
    return ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
  }

  @Test
  void openDirectory_throughLink_isRefused() throws Exception {
    Files.createDirectories(directory.resolve("a/b"));
    Files.createSymbolicLink(directory.resolve("l"), directory.resolve("a"));
    calls.close(calls.openDirectory(root, name("a/b")));
    assertThatThrownBy(() -> calls.openDirectory(root, name("l/b")))
        .hasMessageContaining("ENOTDIR");
    assertThatThrownBy(() -> calls.openDirectory(root, name("l"))).hasMessageContaining("ENOTDIR");
    assertThatThrownBy(() -> calls.openDirectory(root, name("a/x"))).hasMessageContaining("ENOENT");
  }

  @Test
  void openDirectory_ofVeryLongPath_works() throws Exception {
    FileName part = name("d".repeat(200));
    List<Integer> opened = new ArrayList<>(List.of(calls.openDirectory(root, NONE)));
    FileName path = NONE;
    for (int i = 0; i < 40; i++) {
      int at = opened.get(i);
      calls.mkdir(at, part, 0755);
      opened.add(calls.openDirectory(at, part));
      path = path.resolve(part);
    }
    int again = calls.openDirectory(root, path);
    assertThat(calls.status(again, NONE).inode())
        .isEqualTo(calls.status(opened.get(40), NONE).inode());
    calls.close(again);
    for (int i = 40; i >= 0; i--) {
      calls.close(opened.get(i));
      if (i > 0) {
        calls.rmdir(opened.get(i - 1), part);
      }
    }
  }

  @Test
  void open_ofLinkOrFifo_isRefused() throws Exception {
    Files.writeString(directory.resolve("file"), "x");
    Files.createSymbolicLink(directory.resolve("l"), directory.resolve("file"));
    calls.mknod(root, name("fifo"), 0010644, 0);
    assertThatThrownBy(() -> calls.open(root, name("l"), OutputCalls.O_WRONLY, 0))
        .hasMessageContaining("ELOOP");
    assertThatThrownBy(() -> calls.open(root, name("fifo"), OutputCalls.O_RDONLY, 0))
        .hasMessageContaining("EINVAL");
    assertThat(calls.status(root, name("fifo")).attributes().type()).isEqualTo(FileType.FIFO);
  }

  @Test
  void attributes_areOnTheNameItself() throws Exception {
    Files.writeString(directory.resolve("file"), "x");
    Files.createSymbolicLink(directory.resolve("l"), Path.of("file"));
    Instant time = Instant.ofEpochSecond(1_000_000, 123_456_789);
    Stat before = calls.status(root, name("file"));
    int link = calls.openNode(root, name("l"));
    calls.setTimes(link, time, time);
    assertThat(calls.status(root, name("l")).attributes().modificationTime()).isEqualTo(time);
    calls.chown(link, 7, 8);
    assertThat(calls.status(root, name("l")).attributes().uid()).isEqualTo(7);
    assertThatThrownBy(() -> calls.chmod(link, 0600)).isNotNull();
    calls.close(link);
    assertThat(calls.status(root, name("file"))).isEqualTo(before);
  }

  @Test
  void attributes_ofAnOpenNode_areThoseOfTheFileWhoeverRenamesIt() throws Exception {
    Files.writeString(directory.resolve("file"), "x");
    for (int flags : List.of(-1, OutputCalls.O_RDWR)) {
      int file =
          flags < 0 ? calls.openNode(root, name("file")) : calls.open(root, name("file"), flags, 0);
      Files.move(directory.resolve("file"), directory.resolve("other"));
      Files.writeString(directory.resolve("file"), "another program's");
      Stat another = calls.status(root, name("file"));
      Instant time = Instant.ofEpochSecond(1_000_000, 123_456_789);
      calls.chmod(file, 0604);
      calls.chown(file, 7, 8);
      calls.setTimes(file, time, time);
      calls.setExtendedAttribute(file, name("user.key"), new byte[] {1, 2});
      assertThat(calls.extendedAttributes(file)).containsKey(name("user.key"));
      Attributes there = calls.status(root, name("other")).attributes();
      assertThat(there.mode() & 07777).isEqualTo(0604);
      assertThat(List.of(there.uid(), there.gid())).isEqualTo(List.of(7, 8));
      assertThat(there.modificationTime()).isEqualTo(time);
      assertThat(calls.status(root, name("file"))).isEqualTo(another);
      calls.removeExtendedAttribute(file, name("user.key"));
      assertThat(calls.extendedAttributes(file)).doesNotContainKey(name("user.key"));
      calls.close(file);
      Files.move(
          directory.resolve("other"),
          directory.resolve("file"),
          StandardCopyOption.REPLACE_EXISTING);
    }
  }

  @Test
  void contents_areReadAndWrittenAtOffsets() throws Exception {
    int file =
        calls.open(
            root, name("f"), OutputCalls.O_RDWR | OutputCalls.O_CREAT | OutputCalls.O_EXCL, 0600);
    calls.write(file, bytes("hello"), 1L << 20);
    ByteBuffer read = ByteBuffer.allocateDirect(16);
    assertThat(calls.read(file, read, 1L << 20)).isEqualTo(5);
    assertThat(read.flip()).isEqualTo(bytes("hello"));
    assertThat(calls.seek(file, 0, OutputCalls.SEEK_DATA)).isPositive();
    assertThatThrownBy(() -> calls.seek(file, 2L << 20, OutputCalls.SEEK_DATA))
        .hasMessageContaining("ENXIO");
    calls.truncate(file, 3);
    assertThat(calls.status(file, NONE).attributes().size()).isEqualTo(3);
    calls.sync(file, true);
    calls.sync(root, false);
    calls.close(file);
  }

  @Test
  void rename_withFlags_isRefusedOrExchanges() throws Exception {
    Files.writeString(directory.resolve("a"), "1");
    Files.writeString(directory.resolve("b"), "2");
    assertThatThrownBy(
            () -> calls.rename(root, name("a"), root, name("b"), OutputCalls.RENAME_NOREPLACE))
        .hasMessageContaining("EEXIST");
    calls.rename(root, name("a"), root, name("b"), OutputCalls.RENAME_EXCHANGE);
    assertThat(directory.resolve("a")).hasContent("2");
    List<String> names = new ArrayList<>();
    calls.list(root, (name, inode, type) -> names.add(name + " " + type));
    assertThat(names).containsExactlyInAnyOrder("a REGULAR", "b REGULAR");
  }
}
