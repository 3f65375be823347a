package io.pmfs.writable.journal;

import io.pmfs.metadata.FileName;

/** Where a name is: in the mount, or at the source. */
public record At(long directory, FileName name) {}
