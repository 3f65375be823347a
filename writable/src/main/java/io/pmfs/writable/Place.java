package io.pmfs.writable;

import java.nio.file.Path;

/**
 * Where data files may lie.
 *
 * @param name for messages
 * @param directory of this mount alone, on a tier; need not exist
 * @param capacityBytes room that data files may take
 * @param keepFreeBytes room of the file system that stays free
 */
public record Place(String name, Path directory, long capacityBytes, long keepFreeBytes) {}
