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

  /**
   * Sends one answer that lies in a pipe, and empties it. The kernel may take the pages over
   * instead of copying them.
   *
   * @param size of the answer with its header, in bytes
   * @return false if the kernel no longer waits for it
   */
  boolean sendPiped(int pipe, int size) throws FsException;
}
