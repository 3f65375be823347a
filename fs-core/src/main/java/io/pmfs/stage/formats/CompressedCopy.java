package io.pmfs.stage.formats;

import io.pmfs.compression.CodecException;
import io.pmfs.compression.SeekTable;
import io.pmfs.compression.ZstdCodec;
import io.pmfs.memory.BufferPool;
import io.pmfs.memory.DirectMemory;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.tier.CopyReader;
import io.pmfs.tier.OpenCopy;
import java.io.IOException;
import java.nio.ByteBuffer;

/** An open copy in the zstd seekable format. */
final class CompressedCopy implements OpenCopy, Frames {
  private final CopyReader reader;
  private final CopyRecord record;
  private final SeekTable table;
  private final FramedContent content;

  /**
   * Takes over the reader, unless this throws.
   *
   * @throws MismatchException if the copy's layout does not match its record
   */
  CompressedCopy(CopyReader reader, CopyRecord record, ZstdCodec codec, DirectMemory memory)
      throws IOException {
    this.reader = reader;
    this.record = record;
    this.table = table(reader, record, codec, memory.scratch());
    this.content =
        new FramedContent(this, codec, record.version().size(), record.blockSize(), memory);
  }

  private static SeekTable table(
      CopyReader reader, CopyRecord record, ZstdCodec codec, BufferPool scratch)
      throws IOException {
    if (reader.size() != record.storedSize()) {
      throw new MismatchException(
          "it has " + reader.size() + " bytes instead of " + record.storedSize());
    }
    SeekTable table = readTable(reader, record, scratch);
    int mostCompressed = codec.maxCompressedSize(record.blockSize());
    boolean fits =
        table.frameCount() == record.checksums().count()
            && table.contentSize() == record.version().size();
    for (int frame = 0; fits && frame < table.frameCount(); frame++) {
      fits =
          table.contentOffset(frame) == (long) frame * record.blockSize()
              && table.compressedSize(frame) > 0
              && table.compressedSize(frame) <= mostCompressed;
    }
    if (!fits) {
      throw new MismatchException("its seek table does not match its content");
    }
    return table;
  }

  /**
   * A small file is read without its table: it has one frame, which ends where the table starts.
   */
  private static SeekTable readTable(CopyReader reader, CopyRecord record, BufferPool scratch)
      throws IOException {
    if (record.checksums().count() == 1) {
      long frameBytes = reader.size() - SeekTable.encodedSize(1);
      if (frameBytes <= 0 || frameBytes > Integer.MAX_VALUE) {
        throw new MismatchException("its size of " + reader.size() + " bytes is invalid");
      }
      return SeekTable.of(new int[] {(int) frameBytes}, new int[] {(int) record.version().size()});
    }
    try (BufferPool.Loan loan = scratch.take(SeekTable.READ_BYTES)) {
      return SeekTable.load(
          reader.size(),
          loan.buffer(),
          (offset, destination) ->
              reader.read(offset, destination.remaining()).copyTo(destination));
    } catch (CodecException e) {
      throw new MismatchException(String.valueOf(e.getMessage()));
    }
  }

  @Override
  public void copyTo(long offset, int size, ReadSink sink) throws IOException {
    content.copyTo(offset, size, sink);
  }

  @Override
  public void readFrame(int frame, ByteBuffer destination) throws IOException {
    reader
        .read(table.compressedOffset(frame), (int) table.compressedSize(frame))
        .copyTo(destination);
  }

  @Override
  public int checksum(int frame) {
    return record.checksums().get(frame);
  }

  @Override
  public void close() {
    content.close();
    reader.close();
  }
}
