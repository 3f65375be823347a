package io.pmfs.fuse;

import io.pmfs.tier.FsException;

/** How requests are fetched and answers given, whatever they mean. Safe for use by many threads. */
interface KernelChannel {
  /**
   * Waits for the next request.
   *
   * @return its size in bytes; -1 when the session has ended
   */
  int receive(long buffer, int size) throws FsException;

  /**
   * Sends one answer, or a notice: a header and what follows it.
   *
   * @param vectors address of so many struct iovec
   * @return false if the kernel no longer waits for it, or knows nothing of what it is about
   */
  boolean send(long vectors, int count) throws FsException;
}
