package io.pmfs.source;

import io.pmfs.metadata.FileName;

/**
 * Who may use a file of the source, as the source itself says.
 *
 * @param status of the very file that has the list
 * @param keepsLists whether its file system keeps POSIX access-control lists
 * @param list the list as {@code system.posix_acl_access} has it; empty if the file has none
 */
public record SourceAccess(SourceStatus status, boolean keepsLists, FileName list) {
  private static final FileName NONE = FileName.of("");

  /** Of a file without a list, on a file system that keeps some. */
  public static SourceAccess withoutList(SourceStatus status) {
    return new SourceAccess(status, true, NONE);
  }

  /** Of a file without a list, where files never have one. */
  public static SourceAccess withoutLists(SourceStatus status) {
    return new SourceAccess(status, false, NONE);
  }
}
