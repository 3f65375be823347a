package io.pmfs.stage.formats;

import io.pmfs.compression.ZstdCodec;
import io.pmfs.memory.DirectMemory;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Checksums;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Extent;
import io.pmfs.metadata.Inode;
import io.pmfs.tier.CopyWriter;
import io.pmfs.tier.Tier;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Writes one copy block by block, in any order; the first block decides whether it is raw or
 * compressed. Several threads may write and read different blocks at once, but not during commit.
 */
public final class BlockWriter {
  private final Inode inode;
  private final CopyWriter file;
  private final CopyFormat format;
  private final Bundling bundling;
  private final DirectMemory memory;
  private boolean decided; // GUARDED_BY(this)
  private volatile @Nullable FrameWriter frames; // null for a raw copy
  private volatile @Nullable FramedContent content;
  private @Nullable CopyWriter ordered;

  private BlockWriter(
      Inode inode, CopyWriter file, CopyFormat format, Bundling bundling, DirectMemory memory) {
    this.inode = inode;
    this.file = file;
    this.format = format;
    this.bundling = bundling;
    this.memory = memory;
  }

  /**
   * Reserves room for a file's copy at its largest possible size; null if there is none.
   *
   * @param bundling whether the copy may be in a bundle
   */
  public static @Nullable BlockWriter create(
      Inode inode, Tier tier, CopyFormat format, Bundling bundling, DirectMemory memory) {
    CopyWriter file = tier.create(inode.number(), format.mostStored(inode.attributes().size()));
    return file == null ? null : new BlockWriter(inode, file, format, bundling, memory);
  }

  public Tier tier() {
    return file.tier();
  }

  /** Writes a whole block. An IOException means that the tier is full or has failed. */
  public void write(int block, ByteBuffer bytes) throws IOException {
    decide(block, bytes);
    FrameWriter compressed = frames;
    if (compressed != null) {
      compressed.write(block, bytes);
    } else if (bundling.takesRaw(inode.attributes().size())) {
      file.append(bytes);
    } else {
      file.write(Blocks.offset(block), bytes);
    }
  }

  private synchronized void decide(int block, ByteBuffer bytes) throws IOException {
    if (decided) {
      return;
    }
    long size = inode.attributes().size();
    ZstdCodec codec = format.choose(block, bytes.duplicate(), size, memory.scratch());
    if (codec != null) {
      FrameWriter writer =
          new FrameWriter(file, codec, size, bundling.takesCompressed(size), memory.store());
      content = new FramedContent(writer, codec, size, Frames.SIZE, memory);
      frames = writer;
    } else if (!bundling.takesRaw(size)) {
      file.allocate(size);
    }
    decided = true;
  }

  /** Passes a range of written blocks to the sink. */
  public void copyTo(long offset, int size, ReadSink sink) throws IOException {
    FramedContent compressed = content;
    if (compressed == null) {
      sink.accept(file.read(offset, size));
    } else {
      compressed.copyTo(offset, size, sink);
    }
  }

  /**
   * The record of the whole copy.
   *
   * @param blockChecksums of the content's blocks
   */
  public CopyRecord record(Checksums blockChecksums) {
    FrameWriter compressed = frames;
    long size = inode.attributes().size();
    return compressed == null
        ? record(CopyFormat.RAW, size, Blocks.SIZE, blockChecksums)
        : record(
            compressed.codec().number(),
            compressed.storedSize(),
            Frames.SIZE,
            compressed.checksums());
  }

  private CopyRecord record(int codec, long storedSize, int blockSize, Checksums checksums) {
    return new CopyRecord(
        tier().name(),
        codec,
        inode.attributes().version(),
        storedSize,
        blockSize,
        checksums,
        false,
        null);
  }

  /**
   * Makes the copy visible and releases unneeded room. Frames written out of order are first copied
   * to a second file in order.
   *
   * @throws NoRoomException if there is no room for this
   * @return the copy's place in a bundle; null if it is a file
   */
  @Nullable
  public Extent commit() throws IOException {
    FrameWriter compressed = frames;
    if (compressed == null) {
      file.shrink(inode.attributes().size());
      return file.commit();
    }
    file.shrink(compressed.storedSize());
    CopyWriter target = file;
    if (!compressed.isInOrder()) {
      target = tier().create(inode.number(), compressed.storedSize());
      if (target == null) {
        throw new NoRoomException("no room to reorder the frames");
      }
      ordered = target;
      compressed.copyInOrder(target);
    }
    compressed.writeTable(target);
    return target.commit();
  }

  /** Drops a copy that was not committed, and releases all resources. Idempotent. */
  public void close() {
    FramedContent compressed = content;
    if (compressed != null) {
      compressed.close();
    }
    file.close();
    if (ordered != null) {
      ordered.close();
    }
  }
}
