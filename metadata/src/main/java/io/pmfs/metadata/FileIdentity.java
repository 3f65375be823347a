package io.pmfs.metadata;

/**
 * Identifies a file of the source.
 *
 * @param device 0 for the file system of the source's root, else its st_dev. Device numbers of
 *     network file systems change between mounts; most sources are on one file system, for which
 *     this stays 0.
 * @param inode st_ino
 */
public record FileIdentity(long device, long inode) {}
