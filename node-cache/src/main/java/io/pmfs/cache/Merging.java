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
  private final CopyKey key;

  Merging(SharedCopies copies, CopyKey key) {
    this.copies = copies;
    this.key = key;
  }

  @Override
  public long bytes() {
    return key.size();
  }

  @Override
  public void run(ByteBuffer buffer, Copier.Progress progress) {
    SharedCopies.Comparison compared = copies.beginComparison(key);
    if (compared == null) {
      return;
    }
    boolean isEqual = false;
    try {
      isEqual =
          CopyContent.isEqual(
              compared.copy().file, compared.other().file, key.size(), buffer, progress);
    } catch (IOException e) {
      log.warn("{} and {} cannot be compared: {}", key, compared.other().key, e.getMessage());
    } finally {
      copies.endComparison(compared, isEqual);
    }
  }

  /** It is kept apart. */
  @Override
  public void drop() {}
}
