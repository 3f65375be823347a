package io.pmfs.metadata;

import org.jspecify.annotations.Nullable;

/** A store could not be read or written; {@link Database} continues without it. */
final class StoreFailure extends NamespaceException {
  private static final long serialVersionUID = 1L;

  private final transient @Nullable RocksStore store;
  private final boolean isWrite;
  private final boolean isDamage;

  /**
   * The message is one line.
   *
   * @param isWrite whether a write failed, so that the store may still be readable
   * @param isDamage whether the store is damaged
   */
  StoreFailure(
      RocksStore store, boolean isWrite, boolean isDamage, String what, @Nullable Exception cause) {
    super(
        cause == null ? what : what + ": " + RocksFiles.oneLine(cause),
        cause,
        isDamage ? Kind.DAMAGED : Kind.UNAVAILABLE);
    this.store = store;
    this.isWrite = isWrite;
    this.isDamage = isDamage;
  }

  @Nullable RocksStore store() {
    return store;
  }

  boolean isWrite() {
    return isWrite;
  }

  boolean isDamage() {
    return isDamage;
  }
}
