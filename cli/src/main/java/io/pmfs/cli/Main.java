package io.pmfs.cli;

import io.pmfs.cli.mount.MountCommand;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.Wiring;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.fuse.KernelBridge;
import io.pmfs.fuse.system.Priority;
import io.pmfs.fuse.system.StandardStreams;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.NativeText;
import io.pmfs.metadata.PathText;
import io.pmfs.places.Surroundings;
import java.io.PrintStream;
import java.time.InstantSource;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.function.IntConsumer;
import org.jline.utils.Signals;

/** The entry point: the real process, its streams and its exit. */
public final class Main {
  /** What the launcher waits for on the daemon's output; see scripts/pmfs. */
  private static final String READY = "\u0001ready";

  private Main() {}

  /** Runs one command and exits with its status. */
  public static void main(String[] args) throws Exception {
    Wiring.loadLibraries();
    Invocation invocation = invocation();
    Supervision supervision = invocation.supervision();
    String[] arguments =
        supervision != null && supervision.hasSettings()
            ? MountCommand.RESUME.toArray(String[]::new)
            : NativeText.arguments(args);
    int status = PmfsCommand.execute(invocation, arguments);
    invocation.out().flush();
    invocation.err().flush();
    System.exit(status);
  }

  /** Connects the commands to this process. */
  static Invocation invocation() throws Exception {
    Surroundings surroundings = Surroundings.real();
    PrintStream out = NativeText.standardOutput();
    PrintStream err = NativeText.standardError();
    Supervision supervision = Supervision.of(surroundings);
    boolean launched = surroundings.variable("PMFS_BACKGROUND") != null;
    return new Invocation(
        surroundings,
        System.in,
        out,
        err,
        InstantSource.system(),
        new Wiring(
            surroundings,
            supervision,
            kernelFlags(surroundings),
            line -> {
              err.println("pmfs: " + PathText.printable(line));
              err.flush();
            }),
        supervision,
        logFile -> {
          Priority.lowerOptimizer();
          if (launched) {
            detach(out, err);
            StandardStreams.redirectTo(logFile);
          }
        },
        Main::atShutdown,
        Main::atInterrupt,
        status -> Runtime.getRuntime().halt(status));
  }

  /** For tests: the only INIT flags to use, in hexadecimal, as if the kernel were older. */
  private static long kernelFlags(Surroundings surroundings) {
    String flags = surroundings.variable("PMFS_KERNEL_FLAGS");
    return flags == null ? KernelBridge.ALL_KERNEL_FLAGS : Long.parseUnsignedLong(flags, 16);
  }

  /** The JDK replaces a closed standard stream with /dev/null, so its descriptor is not reused. */
  private static void detach(PrintStream out, PrintStream err) {
    err.close();
    out.println(READY);
    out.close();
  }

  private static void atShutdown(BooleanSupplier stop) {
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  if (!stop.getAsBoolean()) {
                    Runtime.getRuntime().halt(ExitStatus.FAILED);
                  }
                },
                "shutdown"));
  }

  /** Exit statuses by the shells' convention: 128 plus the signal's number. */
  private static void atInterrupt(IntConsumer action) {
    Map.of("INT", 130, "TERM", 143)
        .forEach(
            (signal, status) ->
                Signals.register(
                    signal,
                    () -> {
                      Signals.registerDefault(signal);
                      action.accept(status);
                    }));
  }
}
