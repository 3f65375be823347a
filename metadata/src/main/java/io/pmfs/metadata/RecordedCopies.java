package io.pmfs.metadata;

import io.pmfs.table.Family;
import io.pmfs.table.Faults;
import io.pmfs.table.RocksFiles;
import io.pmfs.table.RocksStore;
import io.pmfs.table.StateException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The copies that another state of the same dataset had recorded at one moment. Does not change or
 * lock its directory, which another process may be using. Safe for use by many threads until
 * closed.
 */
public final class RecordedCopies implements AutoCloseable {
  private final RocksStore store;

  /** A copy, and the file as the other state describes it. */
  public record Found(Inode inode, CopyRecord copy) {}

  private RecordedCopies(RocksStore store) {
    this.store = store;
  }

  /**
   * Reads the state in a directory; null if it has no readable state of this dataset.
   *
   * @param source the identity of the dataset
   */
  public static @Nullable RecordedCopies read(Path directory, String source) {
    if (!Files.exists(directory.resolve("CURRENT"))) {
      return null;
    }
    RocksStore opened = null;
    boolean isOf = false;
    try {
      opened =
          RocksFiles.openReadOnly(
              directory, List.of(Family.values()), RocksFiles.MIN_MEMORY_BYTES, Faults.NONE);
      isOf = isOf(opened, source);
      return isOf ? new RecordedCopies(opened) : null;
    } catch (StateException e) {
      return null; // damaged, or being changed now
    } finally {
      if (opened != null && !isOf) {
        opened.close();
      }
    }
  }

  private static boolean isOf(RocksStore opened, String source) {
    byte[] value = opened.get(Family.DEFAULT, Keys.SUPERBLOCK);
    Values.Superblock superblock = value == null ? null : Values.superblock(value);
    return superblock != null
        && superblock.format() == Values.FORMAT
        && superblock.source().equals(source);
  }

  /** The whole copy of one version of a file in a tier; null if there is none. */
  public @Nullable Found find(FileName path, SourceVersion version, String tier) {
    try {
      Long number = number(path.bytes());
      byte[] value = number == null ? null : store.get(Family.COPIES, Keys.copy(number, tier));
      CopyRecord copy = value == null ? null : Values.copy(tier, value);
      if (number == null || copy == null || !copy.version().equals(version)) {
        return null;
      }
      byte[] file = store.get(Family.INODES, Keys.number(number));
      Inode inode = file == null ? null : Values.inode(number, file);
      return inode == null ? null : new Found(inode, copy);
    } catch (StateException e) {
      return null;
    }
  }

  private @Nullable Long number(byte[] path) {
    long number = Namespace.ROOT;
    for (int start = 0, end; start < path.length; start = end + 1) {
      for (end = start; end < path.length && path[end] != '/'; ) {
        end++;
      }
      FileName name = FileName.of(Arrays.copyOfRange(path, start, end));
      byte[] value = store.get(Family.NAMES, Keys.name(number, name));
      Values.NameValue entry = value == null ? null : Values.name(value);
      if (entry == null) {
        return null;
      }
      number = entry.inode();
    }
    return number;
  }

  @Override
  public void close() {
    store.close();
  }
}
