package io.pmfs.daemon.report;

import io.pmfs.settings.MountSettings;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What is mounted where. */
public record MountReport(
    @Figure("where it is mounted, or one of those places") String mountpoint,
    @Figure("the dataset") String source,
    @Figure(
            "null while the mount is at its mount point; an object once it was unmounted lazily, or"
                + " another mount covers it, and files in it are still open")
        @Nullable Detached detached,
    @Figure(
            "the mount points and who mounted them, as `pmfs status` finds them in the mount table;"
                + " null in the daemon's own answer")
        @Nullable List<Holder> holders,
    @Figure(
            "with `--linger`, how long the daemon still stays without a mount point; null while it has"
                + " one")
        @Nullable Long keptSeconds) {

  public MountReport(String mountpoint, String source) {
    this(mountpoint, source, null, null, null);
  }

  /** What the daemon of this mount knows. */
  public static MountReport of(MountSettings settings, boolean isAtMountpoint) {
    return new MountReport(
        settings.mountpoint().toString(),
        settings.source().path().toString(),
        isAtMountpoint ? null : Detached.UNCOUNTED,
        null,
        null);
  }

  /** With the time for which the daemon is kept; null while it has a mount point. */
  public MountReport with(@Nullable Duration kept) {
    return new MountReport(
        mountpoint, source, detached, holders, kept == null ? null : (Long) kept.toSeconds());
  }

  /** With what a command has seen of a detached mount. */
  public MountReport with(Detached seen) {
    return new MountReport(mountpoint, source, seen, holders, keptSeconds);
  }

  /**
   * With the mount points that a command has seen; they are not detached. The daemon knows only its
   * first one, which may have been unmounted.
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

  /** One of the places where the dataset is mounted. */
  public record Holder(
      @Figure("the mount point") String mountpoint,
      @Figure("the user who mounted it; null if that is not recorded") @Nullable String user,
      @Figure("the process that asked for it; null if that is not recorded") @Nullable Long pid,
      @Figure("the job of Slurm, PBS or Flux for which it was mounted; null outside of a job")
          @Nullable String job,
      @Figure("when it was mounted, as in ISO 8601; null if that is not recorded")
          @Nullable String since) {}

  /** What is still open in a mount that is no longer at its mount point. */
  public record Detached(
      @Figure(
              "how many of its files are open, as far as the user of `pmfs status` may see; null if"
                  + " that is not known, as in the daemon's own answer")
          @Nullable Integer openFiles,
      @Figure(
              "the processes that have them open, with one file each, and those of other mount"
                  + " namespaces that have the mount")
          List<String> openBy) {
    /** What a daemon knows: the kernel does not tell it of files that are opened and closed. */
    public static final Detached UNCOUNTED = new Detached(null, List.of());
  }
}
