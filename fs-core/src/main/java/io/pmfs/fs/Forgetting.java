package io.pmfs.fs;

import io.pmfs.metadata.FileType;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.stage.copies.Copies;
import io.pmfs.table.StateException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Removes metadata and copies of files that changed or are gone. */
final class Forgetting {
  private static final Logger log = LoggerFactory.getLogger(Forgetting.class);

  private final Namespace namespace;
  private final Copies copies;

  Forgetting(Namespace namespace, Copies copies) {
    this.namespace = namespace;
    this.copies = copies;
  }

  /** Drops copies that a change of the file has made obsolete. */
  void dropOutdated(Inode before, Inode now) {
    boolean regular = now.attributes().type() == FileType.REGULAR;
    if (regular
        && !(before.attributes().version().equals(now.attributes().version())
            && before.isFile(now.identity(), now.attributes()))) {
      copies.drop(now.number());
    }
  }

  /** Removes inodes whose last name is gone, their copies, and all below directories. */
  void forgetNameless() {
    boolean isAny;
    do {
      isAny = false;
      List<Long> some = namespace.lostNames(0);
      while (!some.isEmpty()) {
        isAny = true;
        forget(some);
        some = namespace.lostNames(some.get(some.size() - 1) + 1);
      }
    } while (isAny);
  }

  private void forget(List<Long> numbers) {
    List<Long> removed = new ArrayList<>(numbers.size());
    for (long number : numbers) {
      if (namespace.removeNameless(number)) {
        // After the inode: no copy of it is made any more.
        copies.drop(number);
        removed.add(number);
      }
    }
    namespace.forgotten(removed);
  }

  /** Removes on another thread what an earlier process did not get to. */
  void goOn(Executor threads) {
    try {
      threads.execute(
          () -> {
            try {
              forgetNameless();
            } catch (StateException e) {
              log.debug("the next import goes on with it: {}", e.getMessage());
            }
          });
    } catch (RejectedExecutionException | OutOfMemoryError e) {
      log.debug("no thread, the next import goes on with it: {}", e.toString());
    }
  }
}
