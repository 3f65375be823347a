package io.pmfs.writable.remote;

import java.io.IOException;

/** The connection to the owner of a writable mount. Thread-safe. */
public interface OwnerLink {
  /**
   * Sends a request once.
   *
   * @param name of the request
   * @param body at most 2 MiB
   * @return the owner's answer
   * @throws BusyException if the request was not taken, because too many others wait
   * @throws IOException if there is no answer; the owner may still have received the request
   */
  byte[] ask(String name, byte[] body) throws IOException;

  String owner();
}
