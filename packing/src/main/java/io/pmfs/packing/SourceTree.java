package io.pmfs.packing;

import java.util.List;

/**
 * All that is to be packed of a source, in no order yet.
 *
 * @param linkCount the highest number of a hard-linked file
 * @param unreadable directories and names of which nothing could be learnt
 * @param sockets names that no tar file can hold
 */
record SourceTree(
    List<PlannedDirectory> directories,
    List<PlannedFile> files,
    int linkCount,
    List<Unreadable> unreadable,
    List<String> sockets) {}
