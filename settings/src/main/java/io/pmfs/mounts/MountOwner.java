package io.pmfs.mounts;

import io.pmfs.places.Surroundings;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import org.jspecify.annotations.Nullable;

/**
 * Who mounted a dataset at one of its mount points. Whether it is still mounted is known only from
 * the mount table.
 *
 * @param device the device number of the session, as in mountinfo
 * @param pid the process that requested the mount, which may have ended; 0 if unknown
 * @param job the scheduler's job; null without a job
 * @param since the time of mounting, in ISO 8601
 */
public record MountOwner(
    String mountpoint, String device, String user, long pid, @Nullable String job, String since) {
  /** The caller of {@code pmfs}, set by its script. */
  private static final String CALLER = "PMFS_CALLER";

  /** The caller of this process as the holder of a mount point. */
  public static MountOwner calling(
      Path mountpoint, String device, Instant now, Surroundings surroundings) {
    String caller = surroundings.variable(CALLER);
    return new MountOwner(
        mountpoint.toString(),
        device,
        surroundings.userName(),
        caller != null && caller.matches("\\d{1,10}") ? Long.parseLong(caller) : 0,
        SchedulerJob.calling(surroundings),
        now.truncatedTo(ChronoUnit.SECONDS).toString());
  }

  /** Whether every field is valid; a file may contain anything. */
  boolean isSound() {
    return RecordFields.isPath(mountpoint)
        && RecordFields.isDevice(device)
        && RecordFields.isWord(user)
        && (pid == 0 || RecordFields.isProcess(pid))
        && (job == null || RecordFields.isWord(job))
        && RecordFields.isWord(since);
  }
}
