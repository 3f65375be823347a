package io.pmfs.metadata;

import org.rocksdb.RocksDBException;

/** Failures of a disk that tests ask for. */
interface Faults {
  Faults NONE = new Faults() {};

  /** Before something is read. */
  default void read() throws RocksDBException {}

  /** Before something is written. */
  default void write() throws RocksDBException {}
}
