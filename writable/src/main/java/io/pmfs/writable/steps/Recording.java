package io.pmfs.writable.steps;

import io.pmfs.posix.FsException;
import io.pmfs.writable.journal.State;
import org.jspecify.annotations.Nullable;

/** Records a step that was made at the source. The caller holds the state's lock. */
public interface Recording {
  void record(State.Update update) throws FsException;

  Recording NOTHING = update -> {};

  /** The failure after the step was made; null if the step is complete. */
  default @Nullable FsException failure() {
    return null;
  }

  default Recording and(Recording next) {
    FsException first = failure();
    return of(
        update -> {
          record(update);
          next.record(update);
        },
        first == null ? next.failure() : first);
  }

  /** With a failure after the step was made; null if the step is complete. */
  static Recording of(Recording recording, @Nullable FsException failure) {
    return new Recording() {
      @Override
      public void record(State.Update update) throws FsException {
        recording.record(update);
      }

      @Override
      public @Nullable FsException failure() {
        return failure;
      }
    };
  }
}
