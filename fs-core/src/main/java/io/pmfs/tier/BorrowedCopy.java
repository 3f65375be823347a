package io.pmfs.tier;

import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A raw copy in the tier of another process, which may remove it at any time; an open copy stays
 * readable. The caller must compare its bytes with checksums.
 */
public final class BorrowedCopy implements AutoCloseable {
  private final FileChannel file;
  private final long first;

  private BorrowedCopy(FileChannel file, long first) {
    this.file = file;
    this.first = first;
  }

  /**
   * Opens a copy.
   *
   * @param tier the directory of the dataset in the tier
   * @param number the inode number in that mount
   * @param extent its place in a bundle; null if it is a separate file
   */
  public static BorrowedCopy open(Path tier, long number, @Nullable Extent extent)
      throws IOException {
    Path path =
        extent == null
            ? CopyFiles.pathIn(tier, number)
            : tier.resolve(BundleFiles.DIRECTORY).resolve(BundleFiles.name(extent.bundle()));
    return new BorrowedCopy(
        FileChannel.open(path, Set.of(StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS)),
        extent == null ? 0 : extent.offset());
  }

  /** Reads until the destination is full; false if the file ends first. */
  public boolean read(long offset, ByteBuffer destination) throws IOException {
    long position = first + offset;
    while (destination.hasRemaining()) {
      int count = file.read(destination, position);
      if (count <= 0) {
        return false;
      }
      position += count;
    }
    return true;
  }

  @Override
  public void close() {
    try {
      file.close();
    } catch (IOException e) {
      // A file that was only read.
    }
  }
}
