package io.pmfs.places;

import org.jspecify.annotations.Nullable;

/**
 * The identity of the source with which a mount started, even if its path leads elsewhere later.
 *
 * @param form how it is shown
 * @param root the identity of the source's directory, {@link
 *     io.pmfs.fuse.system.DirectoryStore#identity}
 * @param shards the fingerprint of the shown tar files, {@code
 *     io.pmfs.shards.ShardStore#fingerprint}; null if there are none
 */
public record SourceIdentity(Form form, String root, @Nullable String shards) {
  /** How a source is shown. */
  public enum Form {
    /** Its files. */
    DIRECTORY,
    /** The files inside the tar files of a directory. */
    TARS,
    /** The files inside one tar file. */
    TAR
  }
}
