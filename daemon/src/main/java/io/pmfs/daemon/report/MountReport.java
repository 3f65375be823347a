package io.pmfs.daemon.report;

import io.pmfs.settings.MountSettings;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What is mounted where. */
public record MountReport(
    @Figure("the mount point, or one of several") String mountpoint,
    @Figure("the dataset") String source,
    @Figure(
            "null while the mount is at its mount point; an object while files are open in a mount"
                + " that was unmounted lazily or is covered by another one")
        @Nullable Detached detached,
    @Figure(
            "the mount points and who mounted them, as `pmfs status` finds them in the mount table;"
                + " null in the daemon's own answer")
        @Nullable List<Holder> holders,
    @Figure(
            "with `--linger`, how much longer the daemon stays without a mount point; null while it"
                + " has one")
        @Nullable Long keptSeconds) {

  public MountReport(String mountpoint, String source) {
    this(mountpoint, source, null, null, null);
  }

  /** The mount as its daemon knows it. */
  public static MountReport of(MountSettings settings, boolean isAtMountpoint) {
    return new MountReport(
        settings.mountpoint().toString(),
        settings.source().path().toString(),
        isAtMountpoint ? null : Detached.UNCOUNTED,
        null,
        null);
  }

  /** Adds how much longer the daemon stays; null while it has a mount point. */
  public MountReport with(@Nullable Duration kept) {
    return new MountReport(
        mountpoint, source, detached, holders, kept == null ? null : (Long) kept.toSeconds());
  }

  /** Adds what a command found out about a detached mount. */
  public MountReport with(Detached seen) {
    return new MountReport(mountpoint, source, seen, holders, keptSeconds);
  }

  /**
   * Adds the attached mount points that a command found. The daemon knows only its first one, which
   * may have been unmounted.
   */
  public MountReport with(List<Holder> seen) {
    boolean isThere =
        seen.isEmpty() || seen.stream().anyMatch(place -> place.mountpoint().equals(mountpoint));
    return new MountReport(
        isThere ? mountpoint : seen.get(0).mountpoint(),
        source,
        seen.isEmpty() ? detached : null,
        seen,
        keptSeconds);
  }

  public record Holder(
      @Figure("the mount point") String mountpoint,
      @Figure("the user who mounted it; null if that is not recorded") @Nullable String user,
      @Figure("the process that mounted it; null if that is not recorded") @Nullable Long pid,
      @Figure("the job of Slurm, PBS or Flux for which it was mounted; null outside of a job")
          @Nullable String job,
      @Figure("when it was mounted, as in ISO 8601; null if that is not recorded")
          @Nullable String since) {}

  /** The open files of a mount that is no longer at its mount point. */
  public record Detached(
      @Figure(
              "how many of its files are open, as far as the user of `pmfs status` may see; null if"
                  + " that is not known, as in the daemon's own answer")
          @Nullable Integer openFiles,
      @Figure(
              "the processes that have them open, with one file each, and processes in other mount"
                  + " namespaces that have the mount")
          List<String> openBy) {
    /** The daemon's own answer: the kernel does not report opens and closes to it. */
    public static final Detached UNCOUNTED = new Detached(null, List.of());
  }
}
