package io.pmfs.writable.journal;

import io.pmfs.metadata.FileName;

/** A name in a directory, in the mount or at the source. */
public record At(long directory, FileName name) {}
