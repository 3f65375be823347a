package io.pmfs.cluster.server;

/**
 * Answers the other nodes of a writable mount that this node owns. Safe for use by many threads.
 */
public interface OutputRequests {
  /** For a node that owns none. */
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
