package io.pmfs.daemon;

import io.pmfs.daemon.dataset.MountOpener;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.metadata.PathText;
import io.pmfs.places.Surroundings;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * One run of the program: its environment, its streams, and what only the real process can do.
 *
 * @param supervision the link to the supervisor that started this process; null if none did
 * @param detach tells the launcher that the mount is up and releases its streams; from then on the
 *     JVM's own messages go to the given log file
 * @param atShutdown registers an action for signals; it returns false if it did not finish
 * @param atInterrupt registers an action for the first SIGINT or SIGTERM, which gets the exit
 *     status of that signal; a second signal ends the process
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

  /** Prints a line for the user, without control characters. */
  public void say(String line) {
    out.println("pmfs: " + PathText.printable(line));
    out.flush();
  }

  public void warn(String line) {
    err.println("pmfs: " + PathText.printable(line));
    err.flush();
  }

  /** Prints the output of a command, without control characters. */
  public void show(String lines) {
    out.println(PathText.printableLines(lines));
  }

  public void showJson(String json) {
    out.println(PathText.printableJson(json));
  }
}
