package io.pmfs.metadata;

/**
 * A name in a directory.
 *
 * @param position its place in the listing, counted from 1; stable until the directory is imported
 *     again
 */
public record DirectoryEntry(long position, FileName name, long inode, FileType type) {}
