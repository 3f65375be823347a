package io.pmfs.tier;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileIdentity;

/** Which file of the source this is, and what stat(2) says of it. */
public record SourceStatus(FileIdentity identity, Attributes attributes) {}
