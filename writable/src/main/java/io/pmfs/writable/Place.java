package io.pmfs.writable;

import java.nio.file.Path;

/**
 * A place for data files.
 *
 * @param name for messages
 * @param directory on a tier, used by this mount alone; need not exist
 * @param capacityBytes limit for data files
 * @param keepFreeBytes of the file system that must stay free
 */
public record Place(String name, Path directory, long capacityBytes, long keepFreeBytes) {}
