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
 * The requests that a test chooses, and what happens to them: {@code
 * store.on(READ).of("a/b").fail(EIO)}. All words but the last narrow the choice. The last one puts
 * it into effect, in place of what the store was told before.
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

  /** Those of one path. */
  public ChosenRequests of(String path) {
    return of(FileName.of(path)::equals);
  }

  /** Those of paths. */
  public ChosenRequests of(Predicate<FileName> chosen) {
    paths = chosen;
    return this;
  }

  /** Those that begin at this offset. */
  public ChosenRequests at(long offset) {
    return from(offset).before(offset + 1);
  }

  /** Those that begin at this offset or behind it. */
  public ChosenRequests from(long offset) {
    from = offset;
    return this;
  }

  /** Those that begin before this offset. */
  public ChosenRequests before(long offset) {
    to = offset;
    return this;
  }

  /** Those of threads whose names begin so. */
  public ChosenRequests by(String prefix) {
    threads = prefix;
    return this;
  }

  /** The first of those that the other words choose. */
  public ChosenRequests first() {
    return nth(1);
  }

  /** The nth of those that the other words choose, from 1. */
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

  /** Ends reads and listings early, as {@link Answer#CUT} says. */
  public void cut() {
    store.faults(
        (operation, path, offset) -> matches(operation, path, offset) ? Answer.CUT : Answer.WHOLE);
  }

  /** Does something before each request is answered, on its thread. */
  public void run(Action action) {
    store.faults(
        (operation, path, offset) -> {
          if (matches(operation, path, offset)) {
            action.run(path);
          }
          return Answer.WHOLE;
        });
  }

  /** Lets the requests wait, as a source does that hangs. */
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
