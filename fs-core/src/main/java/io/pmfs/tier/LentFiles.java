package io.pmfs.tier;

import io.pmfs.memory.ReadResult;
import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The files with copies in a tier that another process uses. */
public final class LentFiles {
  private LentFiles() {}

  /**
   * Opens a copy, which the other process may remove at any time; an open copy stays readable.
   *
   * @param tier the directory of the dataset in the tier
   * @param number the inode number in that mount
   * @param extent its place in a bundle; null if it is a separate file
   */
  public static CopyReader open(Path tier, long number, @Nullable Extent extent)
      throws IOException {
    FileChannel file =
        FileChannel.open(
            path(tier, number, extent), Set.of(StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS));
    if (extent != null) {
      return new LentExtent(file, extent);
    }
    try {
      return new OpenFile(file, DaxFiles.NONE);
    } catch (IOException e) {
      file.close();
      throw e;
    }
  }

  static Path path(Path tier, long number, @Nullable Extent extent) {
    return extent == null
        ? CopyFiles.pathIn(tier, number)
        : tier.resolve(BundleFiles.DIRECTORY).resolve(BundleFiles.name(extent.bundle()));
  }

  private record LentExtent(FileChannel file, Extent extent) implements CopyReader {
    @Override
    public long size() {
      return extent.size();
    }

    @Override
    public ReadResult read(long offset, int size) {
      return new ReadResult.FileRange(file, extent.offset() + offset, size);
    }

    @Override
    public void close() {
      CopyFiles.closeQuietly(file);
    }
  }
}
