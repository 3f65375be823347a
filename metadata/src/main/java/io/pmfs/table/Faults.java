package io.pmfs.table;

import java.io.IOException;
import org.rocksdb.RocksDBException;

/** Disk failures that tests inject. */
public interface Faults {
  Faults NONE = new Faults() {};

  default void beforeRead() throws RocksDBException {}

  default void beforeWrite() throws RocksDBException {}

  /** Called before another kind of file is written. */
  default void beforeFile() throws IOException {
    try {
      beforeWrite();
    } catch (RocksDBException e) {
      throw new IOException(e);
    }
  }
}
