package io.pmfs.daemon.control;

import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * An answer of the control socket.
 *
 * @param body sent as JSON, except a {@link Text}
 * @param allow the methods allowed; null unless the request used another one
 */
record ControlAnswer(HttpResponseStatus status, Object body, @Nullable String allow) {
  /** A body that is sent unchanged. */
  record Text(String type, String text) {}

  public static ControlAnswer ok(Object body) {
    return new ControlAnswer(HttpResponseStatus.OK, body, null);
  }

  static ControlAnswer error(HttpResponseStatus status, String error) {
    return new ControlAnswer(status, Map.of("error", error), null);
  }

  static ControlAnswer wrongMethod(HttpMethod method, String allowed) {
    return new ControlAnswer(
        HttpResponseStatus.METHOD_NOT_ALLOWED,
        Map.of("error", method + ": use " + allowed),
        allowed);
  }
}
