package io.pmfs.settings;

import org.jspecify.annotations.Nullable;

/**
 * Which source a mount began with, whatever lies at its path later.
 *
 * @param form how it is shown
 * @param root of the source's directory, as {@link io.pmfs.fuse.DirectoryStore#identity}
 * @param shards of the tar files that are shown, as {@code io.pmfs.shards.ShardStore#fingerprint};
 *     null if none are
 */
public record SourceIdentity(Form form, String root, @Nullable String shards) {
  /** What is shown of a source. */
  public enum Form {
    /** Its files. */
    DIRECTORY,
    /** What is in the tar files of a directory. */
    TARS,
    /** What is in one tar file. */
    TAR
  }
}
