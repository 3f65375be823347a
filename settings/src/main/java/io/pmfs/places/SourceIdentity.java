package io.pmfs.places;

import org.jspecify.annotations.Nullable;

/**
 * The identity of the source that a mount began with, even if its path leads elsewhere later.
 *
 * @param form how it is shown
 * @param root the identity of the source's directory, {@link
 *     io.pmfs.fuse.system.DirectoryStore#identity}
 * @param shards the fingerprint of the shown tar files, {@code
 *     io.pmfs.shards.ShardStore#fingerprint}; null if there are none
 */
public record SourceIdentity(Form form, String root, @Nullable String shards) {
  /** What is shown of a source. */
  public enum Form {
    /** Its files. */
    DIRECTORY,
    /** The files inside the tar files of a directory. */
    TARS,
    /** The files inside one tar file. */
    TAR
  }
}
