package io.pmfs.daemon.metrics;

import java.util.Map;
import java.util.concurrent.Callable;

/**
 * The answer to GET of one path.
 *
 * @param headers in addition to those of every answer
 * @param body called for each answer, by any thread
 */
public record HttpContent(String type, Map<String, String> headers, Callable<String> body) {
  public HttpContent {
    headers = Map.copyOf(headers);
  }

  public HttpContent(String type, Callable<String> body) {
    this(type, Map.of(), body);
  }
}
