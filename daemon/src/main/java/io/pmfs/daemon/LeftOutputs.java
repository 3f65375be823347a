package io.pmfs.daemon;

import io.pmfs.contents.OutputDirectories;
import io.pmfs.daemon.dataset.MountOpener;
import io.pmfs.daemon.outputs.OutputWiring;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.metadata.FileName;
import io.pmfs.places.OwnPath;
import io.pmfs.places.Surroundings;
import io.pmfs.posix.FsException;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.OutputSettings;
import io.pmfs.settings.SessionSettings;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** Changes that an ended writable mount left behind. Copies them to the source without mounting. */
public final class LeftOutputs implements AutoCloseable {
  private static final long FINAL_MILLIS = 1000;

  private final MountSettings settings;
  private final OutputWiring.LeftParts parts;

  private LeftOutputs(MountSettings settings, OutputWiring.LeftParts parts) {
    this.settings = settings;
    this.parts = parts;
  }

  /**
   * Opens the state of an ended mount.
   *
   * @param state the state directory of the mount, which pmfs status shows while it is mounted
   * @throws MountFailure if there is no such state, a mount uses it, or another user can change it
   */
  public static LeftOutputs open(Path state, Surroundings surroundings, MountOpener opener)
      throws MountFailure {
    SessionSettings session = OutputDirectories.earlier(own(state));
    MountSettings settings = session == null ? null : session.toSettings(surroundings);
    OutputSettings outputs = settings == null ? null : settings.outputs();
    if (session == null || settings == null || outputs == null) {
      throw MountFailure.usage(
          state
              + ": not the state directory of a writable mount; pmfs status and pmfs cache show"
              + " it");
    }
    if (!(opener instanceof Wiring wiring)) {
      throw new IllegalArgumentException("only Wiring opens the changes that a mount left");
    }
    return new LeftOutputs(settings, wiring.openLeft(settings, outputs, session));
  }

  /** The settings in this directory decide which files are written. */
  private static Path own(Path state) throws MountFailure {
    try {
      return OwnPath.ofProcess().existing(state);
    } catch (IOException e) {
      throw MountFailure.usage(
          state, "state", Reason.of(e), "run this command as the user who mounted");
    }
  }

  public Path source() {
    return settings.source().path();
  }

  /** Waits until the source has all changes; returns false after the timeout. */
  public boolean drain(long timeoutMillis) throws InterruptedException {
    return parts.outputs().drain(timeoutMillis);
  }

  public OutputsReport report() {
    return OutputsReport.of(parts.outputs().drainStatus());
  }

  /** Returns the conflicts and refusals so far; later reports omit them. */
  public OutputsReport acknowledge() throws MountFailure {
    try {
      return OutputsReport.of(parts.outputs().acknowledge());
    } catch (FsException e) {
      throw new MountFailure(
          ExitStatus.FAILED, parts.directories().state() + ": state: " + Reason.of(e), e);
    }
  }

  /** Retries changes that the source refused; returns their paths. */
  public List<String> retry(FileName path) throws MountFailure {
    return refused(path, parts.outputs()::retry);
  }

  /** Discards changes that the source refused; returns their paths. */
  public List<String> drop(FileName path) throws MountFailure {
    return refused(path, parts.outputs()::drop);
  }

  private interface Doing {
    List<String> at(FileName path) throws FsException;
  }

  private List<String> refused(FileName path, Doing doing) throws MountFailure {
    try {
      return doing.at(path);
    } catch (FsException e) {
      throw new MountFailure(ExitStatus.FAILED, path + ": " + Reason.of(e), e);
    }
  }

  /** Some paths with changes that the source does not have yet. */
  public List<String> waiting(int most) {
    return parts.outputs().waiting(most);
  }

  /**
   * Closes the state; remaining changes are kept.
   *
   * @throws MountFailure if the marks of directories cannot be removed although nothing is left
   */
  public void finish() throws MountFailure {
    boolean isDrained = false;
    try {
      isDrained = parts.outputs().drain(FINAL_MILLIS) && report().isDrained();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    closeFileSystem();
    if (isDrained) {
      try {
        parts.directories().clear();
      } catch (IOException e) {
        throw new MountFailure(
            ExitStatus.FAILED, parts.directories().state() + ": " + Reason.of(e), e);
      }
    }
  }

  @Override
  public void close() {
    closeFileSystem();
    parts.directories().close();
  }

  private void closeFileSystem() {
    parts.opened().close();
  }
}
