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
 * A raw copy in a tier's directory that another process may be using. That one may remove the copy
 * at any time, which concerns only who opens it later. Its bytes are to be compared with checksums.
 */
public final class BorrowedCopy implements AutoCloseable {
  private final FileChannel file;
  private final long first;

  private BorrowedCopy(FileChannel file, long first) {
    this.file = file;
    this.first = first;
  }

  /**
   * Opens it.
   *
   * @param tier the directory of the dataset in the tier
   * @param number the inode's number there
   * @param extent its place in a bundle; null if it is a file of its own
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

  /** Reads until the destination is full; false if the file ends before. */
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
      // It was only read.
    }
  }
}
