package io.pmfs.it;

import java.nio.file.Path;
import java.time.Duration;

/** The calls on a mount whose opens are answered one by one. */
final class ReadOnlyPassthroughIT extends ReadOnlyIT {
  @Override
  MountedPmfs mountOn(Installation pmfs, Path source) {
    return BridgeMode.PASSTHROUGH.mount(pmfs, Duration.ofMinutes(2), source);
  }
}
