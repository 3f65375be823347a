package io.pmfs.it;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Reads the files of a {@link Dataset} in random order and compares every byte, until it is killed
 * or a read fails; runs inside a container. It reads past the page cache, so the mount is asked
 * each time. About ten times a second it prints how many files it has read and the longest read's
 * milliseconds; {@link ContainerReader} looks at that.
 */
final class ReadLoop {
  /** A reader that works on what it has read; one that does not would keep a small machine busy. */
  private static final long PAUSE_MILLIS = 10;

  private static final long PRINT_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  /** For reads past the page cache; no file system here asks for more. */
  private static final int ALIGNMENT = 4096;

  private ReadLoop() {}

  public static void main(String[] arguments) throws Exception {
    OpenOption direct = direct();
    Path directory = Path.of(arguments[0]);
    List<Dataset.Item> items = items(directory);
    Random random = new Random();
    long printed = System.nanoTime() - PRINT_NANOS;
    long longest = 0;
    for (long reads = 1; ; reads++) {
      Dataset.Item item = items.get(random.nextInt(items.size()));
      long began = System.nanoTime();
      byte[] content = read(directory.resolve(item.name()), item.size(), direct);
      long ended = System.nanoTime();
      if (!Arrays.equals(content, item.content())) {
        throw new IllegalStateException(
            item.name()
                + ": "
                + content.length
                + " bytes, wrong from "
                + difference(item, content));
      }
      longest = Math.max(longest, ended - began);
      if (ended - printed >= PRINT_NANOS) {
        System.out.println(reads + " " + TimeUnit.NANOSECONDS.toMillis(longest));
        printed = ended;
      }
      Thread.sleep(PAUSE_MILLIS);
    }
  }

  /** By its name: the compiler warns of any other use. */
  private static OpenOption direct() throws ReflectiveOperationException {
    Class<?> options = Class.forName("com.sun.nio.file.ExtendedOpenOption");
    return (OpenOption) options.getField("DIRECT").get(null);
  }

  private static int difference(Dataset.Item item, byte[] content) {
    return Arrays.mismatch(content, item.content());
  }

  private static List<Dataset.Item> items(Path directory) throws IOException {
    try (Stream<Path> all = Files.walk(directory)) {
      return all.filter(path -> Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS))
          .map(
              path ->
                  new Dataset.Item(
                      directory.relativize(path).toString(), (int) path.toFile().length()))
          .toList();
    }
  }

  private static byte[] read(Path file, int size, OpenOption direct) throws IOException {
    ByteBuffer buffer = ByteBuffer.allocateDirect(size + 2 * ALIGNMENT).alignedSlice(ALIGNMENT);
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, direct)) {
      // One call: what it leaves out is a failure, as regular files give all that was asked for.
      channel.read(buffer);
    }
    byte[] content = new byte[buffer.flip().remaining()];
    buffer.get(content);
    return content;
  }
}
