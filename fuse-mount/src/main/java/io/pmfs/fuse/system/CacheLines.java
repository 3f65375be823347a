package io.pmfs.fuse.system;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.jspecify.annotations.Nullable;

/**
 * Writes cache lines back to memory, as the JDK does for its own mappings of persistent memory (JEP
 * 352). The launcher opens jdk.internal.misc, which provides this.
 */
final class CacheLines {
  private static final @Nullable MethodHandle WRITE_BACK = find();

  private CacheLines() {}

  /** Why this is impossible on this machine; null if it is possible. */
  static @Nullable String obstacle() {
    return WRITE_BACK != null
        ? null
        : "this Java cannot write cache lines back to persistent memory: this needs x86-64 or"
            + " AArch64, and --add-exports java.base/jdk.internal.misc=ALL-UNNAMED (scripts/pmfs"
            + " sets it)";
  }

  private static @Nullable MethodHandle find() {
    try {
      Class<?> unsafe = Class.forName("jdk.internal.misc.Unsafe");
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      boolean enabled =
          (boolean)
              lookup
                  .findStatic(unsafe, "isWritebackEnabled", MethodType.methodType(boolean.class))
                  .invoke();
      Object instance =
          lookup.findStatic(unsafe, "getUnsafe", MethodType.methodType(unsafe)).invoke();
      return enabled
          ? lookup
              .findVirtual(
                  unsafe,
                  "writebackMemory",
                  MethodType.methodType(void.class, long.class, long.class))
              .bindTo(instance)
          : null;
    } catch (Throwable e) {
      return null;
    }
  }

  /** Writes a range back to memory. Returns when the range is in memory, before any later write. */
  static void writeBack(long address, long size) {
    MethodHandle writeBack = WRITE_BACK;
    if (writeBack == null) {
      throw new IllegalStateException(obstacle());
    }
    try {
      writeBack.invokeExact(address, size);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException(e);
    }
  }
}
