package io.pmfs.metadata;

import org.rocksdb.RocksDBException;

/** Disk failures that tests inject. */
interface Faults {
  Faults NONE = new Faults() {};

  /** Called before a read. */
  default void beforeRead() throws RocksDBException {}

  /** Called before a write. */
  default void beforeWrite() throws RocksDBException {}
}
