package io.pmfs.tasks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.OnRequest;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class PathFileTest {
  @TempDir private Path directory;

  private PathFile open(byte[] bytes, long start) throws IOException {
    Path path = directory.resolve("list");
    Files.write(path, bytes);
    return PathFile.open(FileChannel.open(path, StandardOpenOption.READ), path, start);
  }

  private static byte[] bytes(@Nullable FileName... lines) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PathFile.Writer writer = new PathFile.Writer(bytes);
    for (FileName line : lines) {
      writer.add(line);
    }
    writer.end();
    return bytes.toByteArray();
  }

  private static List<FileName> all(TaskPaths.Cursor cursor) {
    List<FileName> all = new ArrayList<>();
    for (FileName path; (path = cursor.next()) != null; ) {
      all.add(path);
    }
    return all;
  }

  @Test
  void cursor_ofAnyBytes_readsThemAgainWithTheirLines() throws Exception {
    FileName odd = FileName.ofLatin1("\u00ff\n\t");
    FileName longest = FileName.of("x".repeat(TaskPaths.MAX_PATH_BYTES));
    try (PathFile list = open(bytes(null, odd, null, FileName.of(""), longest), 0)) {
      assertThat(list.count()).isEqualTo(3);
      TaskPaths.Cursor cursor = list.open();

      assertThat(cursor.next()).isEqualTo(odd);
      assertThat(cursor.line()).isEqualTo(2);
      assertThat(cursor.position()).isEqualTo(1);
      assertThat(all(cursor.fork())).containsExactly(FileName.of(""), longest);
      assertThat(all(cursor)).containsExactly(FileName.of(""), longest);
      assertThat(cursor.line()).isEqualTo(5);
      assertThat(cursor.next()).isNull();
    }
  }

  @Test
  void cursor_ofRandomPathsOverManyBuffers_readsAll() throws Exception {
    long seed = 7;
    Random random = new Random(seed);
    FileName[] paths = new FileName[5000];
    for (int i = 0; i < paths.length; i++) {
      byte[] bytes = new byte[1 + random.nextInt(300)];
      random.nextBytes(bytes);
      for (int j = 0; j < bytes.length; j++) {
        bytes[j] = bytes[j] == 0 || bytes[j] == '/' || bytes[j] == '.' ? (byte) 'x' : bytes[j];
      }
      paths[i] = FileName.of(bytes);
    }
    try (PathFile list = open(bytes(paths), 0)) {
      assertThat(all(list.open())).as("seed %s", seed).containsExactly(paths);
      TaskPaths.Cursor cursor = list.open();
      cursor.skipTo(4321);
      assertThat(all(cursor)).startsWith(paths[4321]).hasSize(5000 - 4321);
    }
  }

  @Test
  void open_ofAnyBeginning_isRefused() throws Exception {
    byte[] whole = bytes(FileName.of("a/b"), null, FileName.of("c"));
    for (int size = 0; size < whole.length; size++) {
      byte[] cut = Arrays.copyOf(whole, size);
      assertThatThrownBy(() -> open(cut, 0)).isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(() -> open(Arrays.copyOf(whole, whole.length + 1), 0))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void open_withAnyByteChanged_isRefused() throws Exception {
    byte[] whole = bytes(FileName.of("a/b"), null, FileName.of("c"));
    for (int at = 0; at < whole.length; at++) {
      byte[] changed = whole.clone();
      changed[at] ^= 1;
      assertThatThrownBy(() -> open(changed, 0)).isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void add_pathOutside_isRefused() throws Exception {
    PathFile.Writer writer = new PathFile.Writer(new ByteArrayOutputStream());

    assertThatThrownBy(() -> writer.add(FileName.of("../x"))).hasMessageContaining("without . or");
  }

  @Test
  void close_removesTheFileAndEndsItsCursors() throws Exception {
    PathFile list = open(bytes(FileName.of("a")), 0);
    TaskPaths.Cursor cursor = list.open();
    list.close();
    list.close();

    assertThat(directory).isEmptyDirectory();
    assertThatThrownBy(cursor::next)
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageContaining("the list of paths cannot be read");
  }

  @Test
  void cursor_ofAMillionLines_takesNoHeap() throws Exception {
    assertTakesNoHeap(1_000_000);
  }

  @Test
  @OnRequest(value = "large", what = "a list of ten million lines")
  void cursor_ofTenMillionLines_takesNoHeap() throws Exception {
    assertTakesNoHeap(10_000_000);
  }

  /** Memory use does not grow with the list. */
  private void assertTakesNoHeap(int lines) throws Exception {
    Path path = directory.resolve("list");
    try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(path), 1 << 16)) {
      PathFile.Writer writer = new PathFile.Writer(out);
      FileName[] few = new FileName[1000];
      for (int i = 0; i < few.length; i++) {
        few[i] = FileName.of("train/n01440764/n01440764_" + i + ".JPEG");
      }
      for (int i = 0; i < lines; i++) {
        writer.add(few[i % few.length]);
      }
      writer.end();
    }
    long before = used();
    try (PathFile list = PathFile.open(FileChannel.open(path, StandardOpenOption.READ), path, 0)) {
      TaskPaths.Cursor cursor = list.open();
      cursor.skipTo(lines - 1);

      assertThat(list.count()).isEqualTo(lines);
      assertThat(used() - before).isLessThan(4L << 20);
      assertThat(cursor.next()).isNotNull();
      assertThat(cursor.line()).isEqualTo(lines);
    }
  }

  private static long used() {
    System.gc();
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }
}
