package io.pmfs.writable;

import java.nio.file.Path;
import java.util.List;
import java.util.UUID;

/**
 * The settings of a writable mount.
 *
 * @param source the mounted directory
 * @param state a directory used by this mount alone
 * @param places for data files, fastest first; at least one
 * @param session identifies the kernel's session
 * @param resumed whether an earlier process served the same session
 * @param drainBytesPerSecond rate limit of copying to the source; 0 for none
 * @param syncsAtSource whether fsync waits until the source has the file
 * @param hostName part of the names under which conflicting versions are saved
 * @param memoryBytes limit of the state's memory, at least 16 MiB
 * @param copiers threads that copy to the source; 0 if a test runs each step itself
 * @param pieceMillis how often growing open files are copied to the source
 * @param freshMillis how long cached names and attributes of the source are valid
 * @param keptNames how many names of the source are cached; a directory in use may exceed it
 * @param momentMillis how long a request waits for a source that does not answer before it uses
 *     cached names and attributes
 * @param patienceMillis how long cached names and attributes are used while the source does not
 *     answer
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
    long keptNames,
    long momentMillis,
    long patienceMillis) {
  public static final int COPIERS = 8;
  public static final long PIECE_MILLIS = 10_000;
  public static final long FRESH_MILLIS = 1000;
  public static final long KEPT_NAMES = 500_000;
  public static final long MOMENT_MILLIS = 1000;

  public WritableSettings {
    places = List.copyOf(places);
    if (places.isEmpty()) {
      throw new IllegalArgumentException("no place for data files");
    }
  }
}
