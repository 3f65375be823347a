package io.pmfs.fuse;

/**
 * Is told of requests that were answered, by the thread that answered them: it must neither wait
 * nor throw. Safe for use by many threads.
 */
public interface RequestListener {
  /**
   * Requests that took less are not told, and cost nothing but this call: {@link Long#MAX_VALUE} to
   * be told of none. It may change at any time.
   */
  long leastNanos();

  /** Is told of one. What asks for no answer, such as FORGET, is not told. */
  void answered(AnsweredRequest request);
}
