package io.pmfs.daemon.requests;

/**
 * Where lines of requests go, as they come. Called by one thread, which others wait for: it must
 * neither wait nor throw.
 */
public interface LineReader {
  /**
   * Takes lines, or counts them as missing.
   *
   * @param lines each with its line feed
   * @param requests how many of them stand for a request, or for requests that are missing
   */
  void take(String lines, int requests);
}
