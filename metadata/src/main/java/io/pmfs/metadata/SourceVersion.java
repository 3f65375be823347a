package io.pmfs.metadata;

import java.time.Instant;

/** Distinguishes versions of a source file's content: its size and modification time. */
public record SourceVersion(long size, Instant modificationTime) {}
