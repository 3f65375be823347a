package io.pmfs.cli.control;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;
import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.machine.MountFailure;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Sends requests to the daemon of a mount. If the recorded socket is gone, because the daemon has
 * moved it (its first mount point was unmounted) or has been replaced, looks up the new one. Never
 * repeats a request that reached a daemon.
 */
public final class MountClient {
  private final Surroundings surroundings;
  private DaemonRecord daemon;

  public MountClient(DaemonRecord mount, Surroundings surroundings) {
    this.daemon = mount;
    this.surroundings = surroundings;
  }

  /** Sends one request. */
  public interface Question<T> {
    T ask(Path socket) throws IOException, MountFailure;
  }

  /** The record of the daemon that received the last request. */
  public DaemonRecord daemon() {
    return daemon;
  }

  /** Sends a request to the daemon, or to its successor if it is gone. */
  public ControlClient.Answer ask(HttpMethod method, String uri, Duration limit)
      throws IOException, MountFailure {
    return ask(socket -> ControlClient.ask(socket, method, uri, limit));
  }

  public <T> T ask(Question<T> question) throws IOException, MountFailure {
    try {
      return question.ask(Path.of(daemon.socket()));
    } catch (ControlClient.UnreachableException e) {
      return again(question, KnownMounts.open(surroundings).awaitSuccessor(daemon), e);
    }
  }

  /** Sends a request to this daemon only, not to a successor. */
  public ControlClient.Answer askOnlyThisOne(HttpMethod method, String uri, Duration limit)
      throws IOException, MountFailure {
    Question<ControlClient.Answer> question =
        socket -> ControlClient.ask(socket, method, uri, limit);
    try {
      return question.ask(Path.of(daemon.socket()));
    } catch (ControlClient.UnreachableException e) {
      return again(question, KnownMounts.open(surroundings).awaitMove(daemon), e);
    }
  }

  /** The directory of the daemon's state, as it names it; null if it names none. */
  public @Nullable Path state(Duration limit) throws IOException, MountFailure {
    try {
      String answer = ask(HttpMethod.GET, "/status", limit).body();
      StatusReport report = new Gson().fromJson(answer, StatusReport.class);
      String directory = report == null ? null : report.state().stateDirectory();
      return directory == null ? null : Path.of(directory);
    } catch (JsonSyntaxException e) {
      throw new IOException(e.getMessage(), e);
    }
  }

  private <T> T again(
      Question<T> question, @Nullable DaemonRecord other, ControlClient.UnreachableException e)
      throws IOException, MountFailure {
    if (other == null) {
      throw e;
    }
    daemon = other;
    return question.ask(Path.of(daemon.socket()));
  }
}
