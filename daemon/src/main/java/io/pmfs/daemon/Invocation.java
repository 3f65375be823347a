package io.pmfs.daemon;

import io.pmfs.settings.Surroundings;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * One run of the program: its world, its streams, and what only the real process can do.
 *
 * @param supervision the tie to the supervisor that started this process; null if none did
 * @param detach tells the launcher that the mount is up, and lets go of its streams; what the JVM
 *     itself has to say goes to the given log file from then on
 * @param atShutdown registers what a signal has to run; false means that it did not come to an end
 * @param atInterrupt registers what the first SIGINT or SIGTERM runs, with the exit status that is
 *     due; a second one ends the process
 * @param halt ends the process at once with an exit status
 */
public record Invocation(
    Surroundings surroundings,
    InputStream in,
    PrintStream out,
    PrintStream err,
    InstantSource clock,
    MountOpener opener,
    @Nullable Supervision supervision,
    Consumer<Path> detach,
    Consumer<BooleanSupplier> atShutdown,
    Consumer<IntConsumer> atInterrupt,
    IntConsumer halt) {

  public void say(String line) {
    out.println("pmfs: " + line);
    out.flush();
  }

  public void warn(String line) {
    err.println("pmfs: " + line);
    err.flush();
  }
}
