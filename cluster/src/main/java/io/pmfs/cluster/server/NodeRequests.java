package io.pmfs.cluster.server;

/** Answers what peers ask about the node itself. Thread-safe. */
public interface NodeRequests {
  /** Answers every request with 404. */
  NodeRequests NONE = (method, path, body) -> new Answer(404, "{}");

  /**
   * Answers one request.
   *
   * @param method GET, POST or DELETE
   * @param path below /v1/, with its query: it begins with {@code node} or {@code task}
   * @param body JSON; empty if there is none
   */
  Answer answer(String method, String path, String body);

  /**
   * An answer.
   *
   * @param status the HTTP status
   * @param json the body
   */
  record Answer(int status, String json) {}
}
