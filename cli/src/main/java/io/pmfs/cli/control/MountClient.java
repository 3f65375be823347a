package io.pmfs.cli.control;

import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.machine.MountFailure;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Sends requests to the daemon that serves a mount. A daemon moves its socket when its first mount
 * point is unmounted, and one that dies gets a successor: then a record that was just read names a
 * socket that is gone. A request that reached a daemon is not repeated.
 */
public final class MountClient {
  private final Surroundings surroundings;
  private DaemonRecord daemon;

  public MountClient(DaemonRecord mount, Surroundings surroundings) {
    this.daemon = mount;
    this.surroundings = surroundings;
  }

  /** A request to send once. */
  public interface Question<T> {
    T ask(Path socket) throws IOException, MountFailure;
  }

  /** The record of the daemon that the last request went to. */
  public DaemonRecord daemon() {
    return daemon;
  }

  /** Asks the daemon, or its successor if it is gone. */
  public ControlClient.Answer ask(HttpMethod method, String uri, Duration limit)
      throws IOException, MountFailure {
    return ask(socket -> ControlClient.ask(socket, method, uri, limit));
  }

  /** The same with any request. */
  public <T> T ask(Question<T> question) throws IOException, MountFailure {
    try {
      return question.ask(Path.of(daemon.socket()));
    } catch (ControlClient.UnreachableException e) {
      return again(question, KnownMounts.open(surroundings).awaitSuccessor(daemon), e);
    }
  }

  /** Asks this daemon, and no successor. */
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
