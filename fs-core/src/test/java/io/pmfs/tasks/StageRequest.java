package io.pmfs.tasks;

import io.pmfs.metadata.FileName;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** A request to stage, as a test needs it: four jobs without limits, to any tier, not pinned. */
final class StageRequest {
  private static final TaskRequest.Limits NO_LIMITS = new TaskRequest.Limits(4, 0, 0);

  private final TaskPaths paths;
  private TaskRequest.Limits limits = NO_LIMITS;
  private @Nullable String tier;
  private boolean isPinned;
  private boolean isOfMetadata;

  private StageRequest(TaskPaths paths) {
    this.paths = paths;
  }

  static StageRequest of(String... paths) {
    return of(TaskPaths.of(Arrays.stream(paths).map(FileName::of).toList()));
  }

  static StageRequest of(TaskPaths paths) {
    return new StageRequest(paths);
  }

  StageRequest limits(int jobs, long maxBytesPerSecond, long maxOperationsPerSecond) {
    limits = new TaskRequest.Limits(jobs, maxBytesPerSecond, maxOperationsPerSecond);
    return this;
  }

  StageRequest tier(String name) {
    tier = name;
    return this;
  }

  StageRequest pinned() {
    isPinned = true;
    return this;
  }

  StageRequest metadataOnly() {
    isOfMetadata = true;
    return this;
  }

  TaskRequest.Stage request() {
    return new TaskRequest.Stage(paths, limits, tier, isPinned, isOfMetadata, false);
  }
}
