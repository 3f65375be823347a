package io.pmfs.metadata;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * One name of a source directory and the file behind it.
 *
 * @param accessList the file's access-control list as {@code system.posix_acl_access} has it; empty
 *     if it has none; null if unknown
 * @param isVerified false if another node reported it: identity and attributes then describe the
 *     file only until it is compared with this node's own source
 */
public record SourceEntry(
    FileName name,
    FileIdentity identity,
    Attributes attributes,
    @Nullable FileName accessList,
    boolean isVerified) {

  /** An entry of this node's own source, with an unknown access-control list. */
  public SourceEntry(FileName name, FileIdentity identity, Attributes attributes) {
    this(name, identity, attributes, null);
  }

  /** An entry of this node's own source. */
  public SourceEntry(
      FileName name, FileIdentity identity, Attributes attributes, @Nullable FileName accessList) {
    this(name, identity, attributes, accessList, true);
  }

  /**
   * Whether the file may have other names, which must get the same number. An unverified identity
   * never joins names, because one could then be reached with the other's permissions.
   */
  public boolean mayHaveOtherNames() {
    return isVerified && attributes.linkCount() > 1 && attributes.type() != FileType.DIRECTORY;
  }

  /** A name whose file the source could not describe; the source is asked again on access. */
  public static SourceEntry unknown(FileName name) {
    Attributes none =
        new Attributes(0, 1, 0, 0, 0, 0, 0, Instant.EPOCH, Instant.EPOCH, Instant.EPOCH);
    return new SourceEntry(name, new FileIdentity(0, 0), none, null, false);
  }

  public boolean isUnknown() {
    return attributes.type() == FileType.UNKNOWN;
  }

  /** Whether another node described it. */
  public boolean isReported() {
    return !isVerified && !isUnknown();
  }

  /** The same entry, unverified, as another node reports it. */
  public SourceEntry unverified() {
    return new SourceEntry(name, identity, attributes, null, false);
  }
}
