package io.pmfs.stage.formats;

import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.tier.CopyReader;
import io.pmfs.tier.OpenCopy;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.ConcurrentHashMap;

/** Reads copies in the tiers of other mounts, each with the dictionary of its tier. Thread-safe. */
public final class LentFormats implements AutoCloseable {
  /** Copies in further tiers are not read. */
  private static final int MOST = 64;

  private final DirectMemory memory;
  private final ConcurrentHashMap<Path, CopyFormat> formats = new ConcurrentHashMap<>();

  /**
   * Knows no tier yet.
   *
   * @param memory used to compare and decompress
   */
  public LentFormats(DirectMemory memory) {
    this.memory = memory;
  }

  /**
   * Opens a copy that serves only bytes that match their checksums; takes over the reader.
   *
   * @param tier the directory of the dataset in the other mount's tier
   * @throws MismatchException if it is not a readable copy of the file's version
   */
  public OpenCopy open(Path tier, Inode inode, CopyRecord record, CopyReader reader)
      throws IOException {
    boolean isOpen = false;
    try {
      if (formats.size() >= MOST && !formats.containsKey(tier)) {
        throw new IOException("too many tiers");
      }
      CopyFormat format =
          formats.computeIfAbsent(
              tier, any -> new CopyFormat(Compression.NONE, Bundling.NONE, null, task -> {}, null));
      if (!format.canRead(record)) {
        format.shareDictionary(tier);
      }
      OpenCopy copy = format.open(inode, reader, record, memory, () -> {});
      isOpen = true;
      return copy;
    } finally {
      if (!isOpen) {
        reader.close();
      }
    }
  }

  @Override
  public void close() {
    formats.values().forEach(CopyFormat::close);
  }
}
