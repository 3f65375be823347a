package io.pmfs.metadata;

import org.jspecify.annotations.Nullable;

/**
 * One name of a source directory and the file behind it.
 *
 * @param accessList the file's access-control list as {@code system.posix_acl_access} has it; empty
 *     if it has none; null if that is not known
 */
public record SourceEntry(
    FileName name, FileIdentity identity, Attributes attributes, @Nullable FileName accessList) {
  /** Of a file whose access-control list is not known. */
  public SourceEntry(FileName name, FileIdentity identity, Attributes attributes) {
    this(name, identity, attributes, null);
  }
}
