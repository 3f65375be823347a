package io.pmfs.daemon.requests;

/**
 * Receives lines of requests as they are made. One thread calls it, and others wait for that
 * thread: implementations must neither wait nor throw.
 */
public interface LineReader {
  /**
   * Takes lines, or counts them as missing.
   *
   * @param lines each with its line feed
   * @param requests how many requests the lines stand for, including missing ones
   */
  void take(String lines, int requests);
}
