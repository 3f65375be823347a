package io.pmfs.fuse;

import com.kenai.jffi.MemoryIO;
import java.nio.ByteBuffer;

/** Memory that is not ours, as a buffer. */
final class NativeMemory {
  private static final MemoryIO MEMORY = MemoryIO.getInstance();

  private NativeMemory() {}

  /** A view of native memory; valid as long as its owner keeps it. */
  static ByteBuffer view(long address, int size) {
    return MEMORY.newDirectByteBuffer(address, size);
  }
}
