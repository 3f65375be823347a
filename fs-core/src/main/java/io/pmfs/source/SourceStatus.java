package io.pmfs.source;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileIdentity;

/** The identity of a file of the source, and its attributes as reported by stat(2). */
public record SourceStatus(FileIdentity identity, Attributes attributes) {}
