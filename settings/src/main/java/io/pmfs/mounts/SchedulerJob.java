package io.pmfs.mounts;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Files;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The scheduler's job and step to which a process belongs, from its environment. */
public final class SchedulerJob {
  /** Of Slurm, PBS and Flux; scripts/slurm/pmfs-job uses the same. */
  private static final List<String> VARIABLES = List.of("SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID");

  /** The job for which a prologue mounts: its processes do not belong to the job. */
  private static final String SERVED = "PMFS_SERVED_JOB";

  private static final String STEP = "SLURM_STEP_ID";

  /**
   * The steps of a job script and of salloc (slurm.h: SLURM_BATCH_SCRIPT, SLURM_INTERACTIVE_STEP).
   */
  private static final Set<String> LASTING_STEPS = Set.of("4294967291", "4294967290");

  private SchedulerJob() {}

  /** The job whose end ends this process; null if there is none. */
  public static @Nullable String own(Surroundings surroundings) {
    return first(surroundings::variable);
  }

  /**
   * Whether a scheduler may end another process before this one, because it belongs to another job
   * or another step of the same job. Processes of the job's own script live as long as the job.
   * False if the environment of the other process cannot be read.
   */
  public static boolean endsBefore(long pid, Surroundings surroundings) {
    Map<String, String> other = environment(pid, surroundings);
    String job = first(other::get);
    if (job == null) {
      return false;
    }
    String step = step(other::get);
    return !job.equals(own(surroundings))
        || (step != null && !step.equals(step(surroundings::variable)));
  }

  private static Map<String, String> environment(long pid, Surroundings surroundings) {
    Map<String, String> environment = new HashMap<>();
    try {
      byte[] all = Files.readAllBytes(surroundings.root().resolve("proc/" + pid + "/environ"));
      for (String variable : new String(all, ISO_8859_1).split("\0", -1)) {
        int end = variable.indexOf('=');
        if (end > 0) {
          environment.putIfAbsent(variable.substring(0, end), variable.substring(end + 1));
        }
      }
    } catch (IOException e) {
      return Map.of();
    }
    return environment;
  }

  /** The Slurm step; null in the job script. Other schedulers only end whole jobs. */
  private static @Nullable String step(Function<String, @Nullable String> value) {
    String step = value.apply(STEP);
    return step == null || LASTING_STEPS.contains(step) ? null : step;
  }

  /** The job for which this process mounts; null if there is none. */
  static @Nullable String calling(Surroundings surroundings) {
    String served = surroundings.variable(SERVED);
    return served == null ? own(surroundings) : served;
  }

  private static @Nullable String first(Function<String, @Nullable String> value) {
    return VARIABLES.stream()
        .flatMap(name -> Stream.ofNullable(value.apply(name)))
        .filter(Objects::nonNull)
        .findFirst()
        .orElse(null);
  }
}
