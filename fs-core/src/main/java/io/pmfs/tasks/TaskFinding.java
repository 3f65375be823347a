package io.pmfs.tasks;

import io.pmfs.metadata.FileName;

/**
 * What a task reports about one path.
 *
 * @param path below the dataset's root
 * @param reason why, as text for the user
 */
public record TaskFinding(FileName path, Kind kind, String reason) {
  /** The kind of problem. */
  public enum Kind {
    /** No tier had room for a copy. */
    NO_ROOM,
    /** The source or every tier failed, or the file changed while it was copied. */
    FAILED,
    NOT_FOUND,
    /** Only when comparing: there is no copy. */
    MISSING,
    /** Only when comparing: the copy is of another version of the file. */
    STALE,
    /** The copy's bytes differ from the recorded checksums or from the source. */
    BAD
  }
}
