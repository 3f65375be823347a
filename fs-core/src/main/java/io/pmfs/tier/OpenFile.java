package io.pmfs.tier;

import io.pmfs.memory.ReadResult;
import java.io.IOException;
import java.nio.channels.FileChannel;
import org.jspecify.annotations.Nullable;

/**
 * An open copy that is a separate file. In directly mapped memory a large copy is answered from its
 * mapping; a small one is cheaper to read than to map (docs/decisions/0008).
 */
final class OpenFile implements CopyReader {
  /**
   * The size that the kernel can map in one piece (PMD_SIZE of x86-64, and of AArch64 with 4 KiB
   * pages).
   */
  static final long HUGE_PAGE_BYTES = 2 << 20;

  private final FileChannel file;
  private final long size;
  private final DaxFiles dax;
  private boolean tried; // GUARDED_BY(this)
  private DaxFiles.@Nullable FileMapping mapping; // GUARDED_BY(this)

  /**
   * Takes over a file.
   *
   * @param dax maps the file; {@link DaxFiles#NONE} to read it instead
   */
  OpenFile(FileChannel file, DaxFiles dax) throws IOException {
    this.file = file;
    this.size = file.size();
    this.dax = dax;
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public ReadResult read(long offset, int count) {
    ReadResult.FileRange range = new ReadResult.FileRange(file, offset, count);
    DaxFiles.FileMapping mapped = size < HUGE_PAGE_BYTES ? null : mapping();
    return mapped == null
        ? range
        : new ReadResult.Mapping(mapped.range(offset, count), range::copyTo);
  }

  private synchronized DaxFiles.@Nullable FileMapping mapping() {
    if (!tried) {
      mapping = dax.map(file, size);
      tried = true;
    }
    return mapping;
  }

  @Override
  public synchronized void close() {
    tried = true;
    if (mapping != null) {
      mapping.close();
      mapping = null;
    }
    CopyFiles.closeQuietly(file);
  }
}
