package io.pmfs.cli;

import io.pmfs.daemon.TestRun;
import java.nio.file.Path;

/** Runs commands on a fake machine in a directory. */
public final class TestWorld extends TestRun {
  public TestWorld(Path temporary) {
    super(temporary);
  }

  public int execute(String... arguments) {
    out.reset();
    err.reset();
    return PmfsCommand.execute(invocation(), arguments);
  }
}
