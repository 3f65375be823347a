package io.pmfs.pack;

import java.util.List;

/**
 * Everything to pack from a source, in no particular order.
 *
 * @param linkCount the highest number of a hard-linked file
 * @param unreadable directories and names that could not be read
 * @param sockets names that no tar file can contain
 */
record SourceTree(
    List<PlannedDirectory> directories,
    List<PlannedFile> files,
    int linkCount,
    List<Unreadable> unreadable,
    List<String> sockets) {}
