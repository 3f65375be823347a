package io.pmfs.table;

import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.rocksdb.RocksDBException;
import org.rocksdb.Status;

/** A disk that fails while it is told to. */
public final class FaultyDisk implements Faults {
  public volatile boolean failsReads;
  public volatile boolean failsWrites;

  /** Thrown by each read instead. */
  public volatile @Nullable RuntimeException unchecked;

  /** So many writes more until it fails; below 0 for as many as there are. */
  public final AtomicInteger writesLeft = new AtomicInteger(-1);

  /** So many reads more until it fails; below 0 for as many as there are. */
  public final AtomicInteger readsLeft = new AtomicInteger(-1);

  @Override
  public void beforeRead() throws RocksDBException {
    RuntimeException other = unchecked;
    if (other != null) {
      throw other;
    }
    if (readsLeft.get() >= 0 && readsLeft.getAndDecrement() == 0) {
      failsReads = true;
    }
    if (failsReads) {
      throw failure("Input/output error");
    }
  }

  @Override
  public void beforeWrite() throws RocksDBException {
    if (writesLeft.get() >= 0 && writesLeft.getAndDecrement() == 0) {
      failsWrites = true;
    }
    if (failsWrites || failsReads) {
      throw failure("No space left on device");
    }
  }

  public void works() {
    failsReads = false;
    failsWrites = false;
    writesLeft.set(-1);
    readsLeft.set(-1);
  }

  private static RocksDBException failure(String why) {
    String message = "IO error: " + why;
    return new RocksDBException(
        message, new Status(Status.Code.IOError, Status.SubCode.None, message));
  }
}
