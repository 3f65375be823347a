package io.pmfs.metadata;

import org.jspecify.annotations.Nullable;

/**
 * A file of the dataset.
 *
 * @param number ours; persistent, never reused within a dataset
 * @param identity the source file it stands for
 * @param parent the directory of one of its names; the root's is the root
 * @param name that name; empty for the root
 * @param checkedIn the session in which its attributes were last compared with the source
 * @param listing for an imported directory
 */
public record Inode(
    long number,
    FileIdentity identity,
    long parent,
    FileName name,
    int checkedIn,
    @Nullable Listing listing,
    Attributes attributes) {}
