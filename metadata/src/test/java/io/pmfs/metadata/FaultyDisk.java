package io.pmfs.metadata;

import org.rocksdb.RocksDBException;
import org.rocksdb.Status;

/** A disk that fails while it is told to. */
final class FaultyDisk implements Faults {
  volatile boolean failsReads;
  volatile boolean failsWrites;

  @Override
  public void read() throws RocksDBException {
    if (failsReads) {
      throw failure("Input/output error");
    }
  }

  @Override
  public void write() throws RocksDBException {
    if (failsWrites || failsReads) {
      throw failure("No space left on device");
    }
  }

  void works() {
    failsReads = false;
    failsWrites = false;
  }

  private static RocksDBException failure(String why) {
    String message = "IO error: " + why;
    return new RocksDBException(
        message, new Status(Status.Code.IOError, Status.SubCode.None, message));
  }
}
