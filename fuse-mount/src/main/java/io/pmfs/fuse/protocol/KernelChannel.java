package io.pmfs.fuse.protocol;

import io.pmfs.posix.FsException;

/** Fetches requests and sends answers, without interpreting either. Thread-safe. */
public interface KernelChannel {
  /**
   * Waits for the next request.
   *
   * @return its size in bytes; -1 when the session has ended
   */
  int receive(long buffer, int size) throws FsException;

  /**
   * Sends one answer or notice: a header and its body.
   *
   * @param vectors address of {@code count} struct iovec
   * @return false if the kernel no longer waits for the answer
   */
  boolean send(long vectors, int count) throws FsException;

  /**
   * Sends one answer from a pipe, and empties the pipe. The kernel may take over the pages instead
   * of copying them.
   *
   * @param size of the answer with its header, in bytes
   * @return false if the kernel no longer waits for the answer
   */
  boolean sendPiped(int pipe, int size) throws FsException;
}
