package io.pmfs.daemon;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.daemon.dataset.MountOpener;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.settings.TestMachine;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A run of the program on a fake machine in a directory, with its output and its requests to the
 * process.
 */
public class TestRun extends TestMachine {
  public final ByteArrayOutputStream out = new ByteArrayOutputStream();
  public final ByteArrayOutputStream err = new ByteArrayOutputStream();
  public final List<BooleanSupplier> stops = new ArrayList<>();
  public final List<IntConsumer> interrupts = new CopyOnWriteArrayList<>();
  public InputStream in = InputStream.nullInputStream();
  public MountOpener opener =
      (settings, session) -> {
        throw new MountFailure(ExitStatus.FAILED, "no opener in this test");
      };
  public @Nullable Supervision supervision;
  public final List<Integer> halts = new CopyOnWriteArrayList<>();

  public TestRun(Path temporary) {
    super(temporary);
  }

  public Invocation invocation() {
    return new Invocation(
        surroundings(),
        in,
        new PrintStream(out, true, UTF_8),
        new PrintStream(err, true, UTF_8),
        InstantSource.system(),
        opener,
        supervision,
        logFile -> {},
        stops::add,
        interrupts::add,
        halts::add);
  }

  public String output() {
    return out.toString(UTF_8);
  }

  public String errors() {
    return err.toString(UTF_8);
  }
}
