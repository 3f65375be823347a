package io.pmfs.daemon.report;

import org.jspecify.annotations.Nullable;

/** What is recorded for the next mount of the dataset. */
public record StateReport(
    @Figure("where names and the list of copies are") @Nullable String stateDirectory,
    @Figure(
            "why names and the list of copies cannot be recorded for the next mount; `pmfs status`"
                + " then ends with 4. Null if they are recorded")
        @Nullable String stateFailure) {
  static final StateReport NONE = new StateReport(null, null);

  @Figure(
      value = "1 while names and copies are recorded for the next mount, 0 while that fails",
      metric = "pmfs_state_recording")
  public boolean isRecording() {
    return stateFailure == null;
  }
}
