package io.pmfs.stage.formats;

import io.pmfs.memory.BufferPool;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.tier.CopyReader;
import io.pmfs.tier.OpenCopy;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.zip.CRC32C;

/**
 * An open raw copy that was not verified when it was opened. Compares each block with its checksum
 * once, before passing any of its bytes.
 */
public final class RawCopy implements OpenCopy {
  /** Bytes read at once when verifying. */
  private static final int SCRATCH_BYTES = 128 * 1024;

  private final CopyReader reader;
  private final CopyRecord record;
  private final BufferPool scratch;
  private final Runnable whenVerified;
  private final BitSet verifiedBlocks = new BitSet(); // GUARDED_BY(this)
  private volatile boolean isVerified;

  /**
   * Takes over the reader.
   *
   * @param record the checksums to compare with
   * @param scratch lends buffers for verifying
   * @param whenVerified called once, when all blocks were verified
   */
  RawCopy(CopyReader reader, CopyRecord record, BufferPool scratch, Runnable whenVerified) {
    this.reader = reader;
    this.record = record;
    this.scratch = scratch;
    this.whenVerified = whenVerified;
  }

  @Override
  public void copyTo(long offset, int size, ReadSink sink) throws IOException {
    if (!isVerified) {
      verify(offset, size);
    }
    reader.copyTo(offset, size, sink);
  }

  /**
   * Verifies the blocks that a range touches, each once. Readers of other ranges wait: this happens
   * once per session.
   */
  private synchronized void verify(long offset, int size) throws IOException {
    int last = Blocks.index(offset + size - 1);
    for (int i = Blocks.index(offset); i <= last; i++) {
      if (!verifiedBlocks.get(i)) {
        verify(i);
        verifiedBlocks.set(i);
      }
    }
    if (!isVerified && verifiedBlocks.cardinality() == record.checksums().count()) {
      isVerified = true;
      whenVerified.run();
    }
  }

  private void verify(int block) throws IOException {
    CRC32C crc = new CRC32C();
    long offset = Blocks.offset(block);
    long end = offset + Blocks.size(record.version(), block);
    try (BufferPool.Loan loan = scratch.take((int) Math.min(SCRATCH_BYTES, end - offset))) {
      ByteBuffer bytes = loan.buffer();
      while (offset < end) {
        int size = (int) Math.min(SCRATCH_BYTES, end - offset);
        reader.read(offset, size).copyTo(bytes.clear());
        crc.update(bytes.flip());
        offset += size;
      }
    }
    if ((int) crc.getValue() != record.checksums().get(block)) {
      throw new MismatchException("the checksum of block " + block + " does not match");
    }
  }

  @Override
  public void close() {
    reader.close();
  }
}
