package io.pmfs.metadata;

import java.time.Instant;

/**
 * Distinguishes versions of a source file's content: its size in bytes and its modification time.
 */
public record SourceVersion(long size, Instant modificationTime) {}
