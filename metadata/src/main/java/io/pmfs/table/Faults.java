package io.pmfs.table;

import java.io.IOException;
import org.rocksdb.RocksDBException;

/** Disk failures that tests inject. */
public interface Faults {
  Faults NONE = new Faults() {};

  /** Called before a read. */
  default void beforeRead() throws RocksDBException {}

  /** Called before a write. */
  default void beforeWrite() throws RocksDBException {}

  /** The same before a file of another kind is written. */
  default void beforeFile() throws IOException {
    try {
      beforeWrite();
    } catch (RocksDBException e) {
      throw new IOException(e);
    }
  }
}
