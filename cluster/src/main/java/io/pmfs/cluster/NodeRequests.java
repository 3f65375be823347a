package io.pmfs.cluster;

/** Answers what peers ask of the node itself. Safe for use by many threads. */
public interface NodeRequests {
  /** Nothing is answered. */
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
   * @param status of HTTP
   * @param json its body
   */
  record Answer(int status, String json) {}
}
