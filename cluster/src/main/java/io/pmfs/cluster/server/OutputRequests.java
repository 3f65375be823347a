package io.pmfs.cluster.server;

/** Answers the other nodes of a writable mount that this node owns. Thread-safe. */
public interface OutputRequests {
  /** Rejects every request, for a node that owns no writable mount. */
  OutputRequests NONE =
      (name, body) -> {
        throw new IllegalArgumentException("this node owns no writable mount");
      };

  /**
   * Answers one request. It may wait for the source, without a limit.
   *
   * @param name of the request
   * @throws IllegalArgumentException with a one-line message, if the request is malformed
   */
  byte[] answer(String name, byte[] body);
}
