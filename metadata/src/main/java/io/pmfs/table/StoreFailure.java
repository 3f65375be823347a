package io.pmfs.table;

import org.jspecify.annotations.Nullable;

/** A store could not be read or written; {@code Database} continues without it. */
public final class StoreFailure extends StateException {
  private final @Nullable RocksStore store;
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

  @Nullable
  public RocksStore store() {
    return store;
  }

  public boolean isWrite() {
    return isWrite;
  }

  public boolean isDamage() {
    return isDamage;
  }
}
