package io.pmfs.mounts;

import java.nio.file.Path;

/**
 * A daemon in a registry.
 *
 * @param running false if it died and left its files
 * @param directory of the registry
 * @param owner the owner of the registry, if root reads another user's; else -1
 */
public record KnownDaemon(DaemonRecord daemon, boolean running, Path directory, long owner) {
  KnownDaemon with(DaemonRecord other) {
    return new KnownDaemon(other, running, directory, owner);
  }
}
