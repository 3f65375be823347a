package io.pmfs.table;

/** A sorted map of a database, as RocksDB's column families are. Equal columns have equal names. */
public interface Column {
  /** The name as RocksDB stores it. */
  byte[] bytes();

  /** Whether keys that share their first eight bytes are read together. */
  boolean grouped();
}
