package io.pmfs.daemon.requests;

/**
 * Receives new lines of requests. Called by one thread, for which others wait, so implementations
 * must neither block nor throw.
 */
public interface LineReader {
  /**
   * Accepts lines or counts them as missing.
   *
   * @param lines each with its line feed
   * @param requests how many requests the lines stand for, including missing ones
   */
  void take(String lines, int requests);
}
