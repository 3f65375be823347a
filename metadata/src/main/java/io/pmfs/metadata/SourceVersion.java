package io.pmfs.metadata;

import java.time.Instant;

/**
 * What tells one content of a source file from another: its size in bytes and its modification
 * time.
 */
public record SourceVersion(long size, Instant modificationTime) {}
