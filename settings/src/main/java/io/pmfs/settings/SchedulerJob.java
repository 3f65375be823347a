package io.pmfs.settings;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The job of a scheduler that a process belongs to, by its environment. */
public final class SchedulerJob {
  /** Of Slurm, PBS and Flux; scripts/slurm/pmfs-job looks for the same. */
  private static final List<String> VARIABLES = List.of("SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID");

  /** The job for which a prologue mounts, whose processes do not belong to the job. */
  private static final String SERVED = "PMFS_SERVED_JOB";

  private SchedulerJob() {}

  /** The job that ends this process with it; null if there is none. */
  public static @Nullable String own(Surroundings surroundings) {
    return first(surroundings::variable);
  }

  /** The same of another process; also null if its environment cannot be read. */
  public static @Nullable String of(long pid, Surroundings surroundings) {
    try {
      byte[] environment =
          Files.readAllBytes(surroundings.root().resolve("proc/" + pid + "/environ"));
      List<String> all = Arrays.asList(new String(environment, ISO_8859_1).split("\0"));
      return first(
          name ->
              all.stream()
                  .filter(variable -> variable.startsWith(name + "="))
                  .map(variable -> variable.substring(name.length() + 1))
                  .findFirst()
                  .orElse(null));
    } catch (IOException e) {
      return null;
    }
  }

  /** The job for which this process mounts; null if it is for none. */
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
