package io.pmfs.cli;

import java.nio.file.Path;

/** What is on a mount point already: nothing, our own mount, or the remains of one. */
final class PreviousMount {
  /** Crashes can stack stale mounts; more than this is not ours to untangle. */
  private static final int MAX_STALE = 8;

  private final MountSettings settings;
  private final Registry registry;
  private final Invocation invocation;

  PreviousMount(MountSettings settings, Registry registry, Invocation invocation) {
    this.settings = settings;
    this.registry = registry;
    this.invocation = invocation;
  }

  /** Cleans up stale mounts; fails if something that lives is mounted there. */
  void clear() throws MountFailure {
    Path mountpoint = settings.mountpoint();
    Registry.Entry entry = registry.find(mountpoint);
    if (entry != null) {
      throw refusal(entry);
    }
    for (int i = 0; i < MAX_STALE; i++) {
      MountTable.Mount mount = invocation.surroundings().mounts().at(mountpoint);
      if (mount == null || !mount.isPmfs()) {
        return;
      }
      switch (MountProbe.of(mountpoint)) {
        case STALE -> {
          ExternalUnmount.run(mountpoint, true, invocation.surroundings());
          invocation.say(mountpoint + ": cleaned up a stale mount, whose daemon had died");
        }
        case HUNG ->
            throw new MountFailure(
                ExitStatus.FAILED,
                mountpoint + ": a pmfs mount that does not answer; pmfs umount --lazy it first");
        default ->
            throw MountFailure.usage(
                "%s: already mounted by a pmfs of another user or runtime directory (source %s);"
                        .formatted(mountpoint, mount.source())
                    + " unmount it first");
      }
    }
  }

  private MountFailure refusal(Registry.Entry entry) throws MountFailure {
    Path mountpoint = settings.mountpoint();
    MountTable.Mount mount = invocation.surroundings().mounts().at(mountpoint);
    if (mount == null || !mount.isPmfs()) {
      return new MountFailure(
          ExitStatus.FAILED,
          "%s: pmfs (pid %d) is just stopping there; try again in a moment"
              .formatted(mountpoint, entry.pid()));
    }
    return MountFailure.usage(
        "%s: already mounted: pid %d serves %s there; pmfs umount %s first"
            .formatted(mountpoint, entry.pid(), entry.source(), mountpoint));
  }
}
