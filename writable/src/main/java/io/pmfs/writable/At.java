package io.pmfs.writable;

import io.pmfs.metadata.FileName;

/** Where a name is: in the mount, or at the source. */
record At(long directory, FileName name) {}
