package io.pmfs.cache;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Compares a whole copy, byte by byte, with another one of the same size and checksum, and has both
 * kept once if they are equal. The checksum is no proof: users can make files that have the one of
 * another file, and would get its bytes.
 */
final class Merging implements Copier.Work {
  private static final Logger log = LoggerFactory.getLogger(Merging.class);

  private final SharedCopies copies;
  private final SharedCopy copy;

  Merging(SharedCopies copies, SharedCopy copy) {
    this.copies = copies;
    this.copy = copy;
  }

  @Override
  public long bytes() {
    return copy.key.size();
  }

  @Override
  public void run(ByteBuffer buffer, Copier.Progress progress) {
    SharedCopy other = copies.beginComparison(copy);
    if (other == null) {
      return;
    }
    boolean isEqual = false;
    try {
      isEqual = CopyContent.isEqual(copy.file, other.file, copy.key.size(), buffer, progress);
    } catch (IOException e) {
      log.warn("{} and {} cannot be compared: {}", copy.key, other.key, e.getMessage());
    } finally {
      copies.endComparison(copy, other, isEqual);
    }
  }

  /** It is kept apart. */
  @Override
  public void drop() {}
}
