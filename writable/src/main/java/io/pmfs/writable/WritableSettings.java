package io.pmfs.writable;

import java.nio.file.Path;
import java.util.List;
import java.util.UUID;

/**
 * How a writable mount works.
 *
 * @param source the directory that is mounted
 * @param state a directory of this mount alone
 * @param places for data files, fastest first; at least one
 * @param session differs for each session of the kernel
 * @param resumed whether a former process served the same session
 * @param drainBytesPerSecond limit of copying to the source; 0 for none
 * @param syncsAtSource whether a sync of a file waits until the source has it
 * @param hostName in the names of files that are kept beside others
 * @param memoryBytes limit of the state's memory, at least 16 MiB
 * @param copiers threads that copy to the source; 0 if a test makes each step itself
 * @param pieceMillis how often files that stay open and grow are brought to the source
 * @param freshMillis how long names and attributes of the source are taken as unchanged
 * @param momentMillis how long a request waits for a source that does not answer, if it can go on
 *     with what is known
 * @param patienceMillis how long what is known is enough
 */
public record WritableSettings(
    Path source,
    Path state,
    List<Place> places,
    UUID session,
    boolean resumed,
    long drainBytesPerSecond,
    boolean syncsAtSource,
    String hostName,
    long memoryBytes,
    int copiers,
    long pieceMillis,
    long freshMillis,
    long momentMillis,
    long patienceMillis) {
  private static final int COPIERS = 8;
  private static final long PIECE_MILLIS = 10_000;
  private static final long FRESH_MILLIS = 1000;
  private static final long MOMENT_MILLIS = 1000;

  public WritableSettings {
    places = List.copyOf(places);
    if (places.isEmpty()) {
      throw new IllegalArgumentException("no place for data files");
    }
  }

  /** The usual number of threads and times. */
  public WritableSettings(
      Path source,
      Path state,
      List<Place> places,
      UUID session,
      boolean resumed,
      long drainBytesPerSecond,
      boolean syncsAtSource,
      String hostName,
      long memoryBytes,
      long patienceMillis) {
    this(
        source,
        state,
        places,
        session,
        resumed,
        drainBytesPerSecond,
        syncsAtSource,
        hostName,
        memoryBytes,
        COPIERS,
        PIECE_MILLIS,
        FRESH_MILLIS,
        MOMENT_MILLIS,
        patienceMillis);
  }
}
