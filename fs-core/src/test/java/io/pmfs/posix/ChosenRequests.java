package io.pmfs.posix;

import io.pmfs.metadata.FileName;
import io.pmfs.source.FaultyStore;
import io.pmfs.source.FaultyStore.Answer;
import io.pmfs.source.FaultyStore.Operation;
import io.pmfs.tier.Hold;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;

/**
 * Requests chosen by a test, and their faults: {@code store.on(READ).of("a/b").fail(EIO)}. All
 * calls but the last narrow the choice. The last one makes it effective, and replaces the store's
 * former fault.
 */
public final class ChosenRequests {
  private final FaultyStore store;
  private final Set<Operation> operations = EnumSet.noneOf(Operation.class);
  private Predicate<FileName> paths = path -> true;
  private long from;
  private long to = Long.MAX_VALUE;
  private String threads = "";
  private int nth;
  private final AtomicInteger seen = new AtomicInteger();

  /** Called before a request is answered, on its thread; may fail it. */
  @FunctionalInterface
  public interface Action {
    void run(FileName path) throws FsException;
  }

  public ChosenRequests(FaultyStore store, List<Operation> operations) {
    this.store = store;
    this.operations.addAll(operations);
  }

  /** Requests for one path. */
  public ChosenRequests of(String path) {
    return of(FileName.of(path)::equals);
  }

  /** Requests for matching paths. */
  public ChosenRequests of(Predicate<FileName> chosen) {
    paths = chosen;
    return this;
  }

  /** Reads at this offset. */
  public ChosenRequests at(long offset) {
    return from(offset).before(offset + 1);
  }

  /** Reads from this offset on. */
  public ChosenRequests from(long offset) {
    from = offset;
    return this;
  }

  /** Reads before this offset. */
  public ChosenRequests before(long offset) {
    to = offset;
    return this;
  }

  /** Requests of threads whose names have this prefix. */
  public ChosenRequests by(String prefix) {
    threads = prefix;
    return this;
  }

  /** The first of the requests chosen by the other calls. */
  public ChosenRequests first() {
    return nth(1);
  }

  /** The nth of the requests chosen by the other calls, from 1. */
  public ChosenRequests nth(int number) {
    nth = number;
    return this;
  }

  /** Answers with an error. */
  public void fail(Errno errno) {
    run(
        path -> {
          throw new FsException(errno, "injected at " + path);
        });
  }

  /** Truncates reads and listings, as in {@link Answer#CUT}. */
  public void cut() {
    store.faults(
        (operation, path, offset) -> matches(operation, path, offset) ? Answer.CUT : Answer.WHOLE);
  }

  /** Runs an action before each request is answered, on its thread. */
  public void run(Action action) {
    store.faults(
        (operation, path, offset) -> {
          if (matches(operation, path, offset)) {
            action.run(path);
          }
          return Answer.WHOLE;
        });
  }

  /** Makes the requests wait, like a source that hangs. */
  public Hold hold() {
    Hold hold = new Hold();
    run(path -> hold.pass());
    store.releasedWhenCleared(hold);
    return hold;
  }

  private boolean matches(Operation operation, FileName path, long offset) {
    return (operations.isEmpty() || operations.contains(operation))
        && paths.test(path)
        && offset >= from
        && offset < to
        && Thread.currentThread().getName().startsWith(threads)
        && (nth == 0 || seen.incrementAndGet() == nth);
  }
}
