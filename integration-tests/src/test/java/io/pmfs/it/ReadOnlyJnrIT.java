package io.pmfs.it;

import java.nio.file.Path;
import java.time.Duration;

/** The calls on a mount through libfuse, which root gets only when asked for. */
final class ReadOnlyJnrIT extends ReadOnlyIT {
  @Override
  MountedPmfs mountOn(Installation pmfs, Path source) {
    return BridgeMode.JNR.mount(pmfs, Duration.ofMinutes(2), source);
  }
}
