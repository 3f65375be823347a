package io.pmfs.metadata;

/** One name of a source directory and the file behind it. */
public record SourceEntry(FileName name, FileIdentity identity, Attributes attributes) {}
