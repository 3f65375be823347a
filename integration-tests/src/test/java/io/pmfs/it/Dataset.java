package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.primitives.Bytes;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;

/**
 * A directory of files whose contents follow from their names, so that readers compare with what
 * must be there and not with a source that may be wrong in the same way.
 */
record Dataset(Path root, List<Item> items) {

  /** One file. */
  record Item(String name, int size) {
    byte[] content() {
      byte[] content = new byte[size];
      new SplittableRandom(31L * name.hashCode() + size).nextBytes(content);
      return content;
    }
  }

  /** Files of the given sizes, ten to a directory. */
  static Dataset create(Path root, int... sizes) {
    List<Item> items = new ArrayList<>();
    for (int i = 0; i < sizes.length; i++) {
      items.add(new Item(String.format("part-%03d/file-%05d", i / 10, i), sizes[i]));
    }
    try {
      for (Item item : items) {
        Path file = root.resolve(item.name());
        Files.createDirectories(file.getParent());
        Files.write(file, item.content());
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return new Dataset(root, items);
  }

  static int[] sizes(int count, int size) {
    int[] sizes = new int[count];
    Arrays.fill(sizes, size);
    return sizes;
  }

  long bytes() {
    return items.stream().mapToLong(Item::size).sum();
  }

  void assertEqualBelow(Path directory) {
    for (Item item : items) {
      assertEqualBelow(directory, item);
    }
  }

  static void assertEqualBelow(Path directory, Item item) {
    assertThat(read(directory.resolve(item.name())))
        .as(item.name())
        .matches(content -> Arrays.equals(content, item.content()), "has the right bytes");
  }

  static byte[] read(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Where in a tier the bytes of a copy are. */
  record Copy(Path file, int offset) {}

  /** The raw copy of an item in a tier, whatever its file is called and holds besides. */
  static Copy copyOf(Item item, Path tier) {
    byte[] content = item.content();
    for (Path file : Installation.files(tier)) {
      int offset =
          file.toFile().length() < content.length ? -1 : Bytes.indexOf(read(file), content);
      if (offset >= 0) {
        return new Copy(file, offset);
      }
    }
    throw new AssertionError("no copy of " + item + " in " + tier);
  }
}
