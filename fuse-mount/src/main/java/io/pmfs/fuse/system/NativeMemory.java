package io.pmfs.fuse.system;

import com.kenai.jffi.MemoryIO;
import java.nio.ByteBuffer;

/** Views of memory that the JVM does not own. */
public final class NativeMemory {
  private static final MemoryIO MEMORY = MemoryIO.getInstance();

  private NativeMemory() {}

  /** A view of native memory; valid until its owner frees the memory. */
  public static ByteBuffer view(long address, int size) {
    return MEMORY.newDirectByteBuffer(address, size);
  }
}
