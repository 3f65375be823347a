package io.pmfs.metadata;

/** A sorted map of a database, as RocksDB's column families are. Equal columns have equal names. */
interface Column {
  /** The name as RocksDB stores it. */
  byte[] bytes();

  /** Whether keys that share their first eight bytes are read together. */
  boolean grouped();
}
