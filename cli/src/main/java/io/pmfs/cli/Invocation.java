package io.pmfs.cli;

import java.io.PrintStream;
import java.time.InstantSource;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * One run of the program: its world, its streams, and what only the real process can do.
 *
 * @param detach tells the launcher that the mount is up, and lets go of its streams
 * @param atShutdown registers what a signal has to run; false means that it did not come to an end
 */
record Invocation(
    Surroundings surroundings,
    PrintStream out,
    PrintStream err,
    InstantSource clock,
    MountOpener opener,
    Runnable detach,
    Consumer<BooleanSupplier> atShutdown) {

  void say(String line) {
    out.println("pmfs: " + line);
    out.flush();
  }

  void warn(String line) {
    err.println("pmfs: " + line);
    err.flush();
  }
}
