package io.pmfs.metadata;

/**
 * Identifies a file of the source.
 *
 * @param device 0 for the file system of the source's root, else its st_dev. Device numbers of
 *     network file systems change between mounts; most sources are on one file system, for which
 *     this stays 0. Negative where the number is made from the content: {@link #isExact}.
 * @param inode st_ino
 */
public record FileIdentity(long device, long inode) {
  /**
   * Whether another number means another version, even with the same size and times, as for members
   * of tar files. Sources that are directories may give a file another number.
   */
  public boolean isExact() {
    return device < 0;
  }
}
