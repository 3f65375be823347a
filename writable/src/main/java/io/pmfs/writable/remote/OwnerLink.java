package io.pmfs.writable.remote;

import java.io.IOException;

/** The way to the owner of a writable mount. Safe for use by many threads. */
public interface OwnerLink {
  /**
   * Brings a request to the owner, once.
   *
   * @param name of the request
   * @param body at most 2 MiB
   * @return the owner's answer
   * @throws IOException if there is no answer; the owner may have the request nevertheless
   */
  byte[] ask(String name, byte[] body) throws IOException;

  /** The owner, for messages. */
  String owner();
}
