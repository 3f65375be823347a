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

/** What a writable mount left when it ended: brings it to the source without mounting again. */
public final class LeftOutputs implements AutoCloseable {
  private static final long FINAL_MILLIS = 1000;

  private final MountSettings settings;
  private final OutputWiring.LeftParts parts;

  private LeftOutputs(MountSettings settings, OutputWiring.LeftParts parts) {
    this.settings = settings;
    this.parts = parts;
  }

  /**
   * Opens what is left.
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
              + ": not the state of a writable mount; see the line state of pmfs status, or pmfs cache");
    }
    if (!(opener instanceof Wiring wiring)) {
      throw new IllegalArgumentException("only the program itself opens what is left");
    }
    return new LeftOutputs(settings, wiring.openLeft(settings, outputs, session));
  }

  /** The settings in it say what is written where. */
  private static Path own(Path state) throws MountFailure {
    try {
      return OwnPath.ofProcess().existing(state);
    } catch (IOException e) {
      throw MountFailure.usage(
          state, "state", Reason.of(e), "run this command as the user who mounted");
    }
  }

  /** The path of the source. */
  public Path source() {
    return settings.source().path();
  }

  /** Waits until all is at the source, at most so long; returns whether it is. */
  public boolean drain(long timeoutMillis) throws InterruptedException {
    return parts.outputs().drain(timeoutMillis);
  }

  /** How much is left. */
  public OutputsReport report() {
    return OutputsReport.of(parts.outputs().drainStatus());
  }

  /** What was told of conflicts and refusals until now, and is told no longer. */
  public OutputsReport acknowledge() throws MountFailure {
    try {
      return OutputsReport.of(parts.outputs().acknowledge());
    } catch (FsException e) {
      throw new MountFailure(
          ExitStatus.FAILED, parts.directories().state() + ": state: " + Reason.of(e), e);
    }
  }

  /** Has changes that the source refuses tried again; returns their paths. */
  public List<String> retry(FileName path) throws MountFailure {
    return refused(path, parts.outputs()::retry);
  }

  /** Gives up changes that the source refuses; returns their paths. */
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

  /** Some paths of what is left. */
  public List<String> waiting(int most) {
    return parts.outputs().waiting(most);
  }

  /**
   * Ends; what is left stays.
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
