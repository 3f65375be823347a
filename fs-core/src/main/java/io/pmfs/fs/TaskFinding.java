package io.pmfs.fs;

import io.pmfs.metadata.FileName;

/**
 * What a task has to report of one path.
 *
 * @param path below the dataset's root
 * @param reason why, in words for a user
 */
public record TaskFinding(FileName path, Kind kind, String reason) {
  /** What is the matter. */
  public enum Kind {
    /** No tier had room for a copy. */
    NO_ROOM,
    /** The source or every tier failed, or the file changed while it was copied. */
    FAILED,
    /** There is no such path in the dataset. */
    NOT_FOUND,
    /** Compared only: there is no copy. */
    MISSING,
    /** Compared only: the copy is of another version of the file. */
    STALE,
    /** The copy's bytes are not those that were recorded, or not the source's. */
    BAD
  }
}
