package io.pmfs.source;

import io.pmfs.metadata.FileName;

/**
 * Who may use a file of the source, as the source itself reports.
 *
 * @param status of the file from which the list was read
 * @param keepsLists whether its file system supports POSIX access-control lists
 * @param list the list as {@code system.posix_acl_access} has it; empty if the file has none
 */
public record SourceAccess(SourceStatus status, boolean keepsLists, FileName list) {
  private static final FileName NONE = FileName.of("");

  /** For a file without a list, on a file system that supports lists. */
  public static SourceAccess withoutList(SourceStatus status) {
    return new SourceAccess(status, true, NONE);
  }

  /** For a file system that supports no lists. */
  public static SourceAccess withoutLists(SourceStatus status) {
    return new SourceAccess(status, false, NONE);
  }
}
