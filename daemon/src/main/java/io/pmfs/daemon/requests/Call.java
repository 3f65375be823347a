package io.pmfs.daemon.requests;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PathText;
import org.jspecify.annotations.Nullable;

/**
 * The caller and the operation of a request: the part of an access log's line before the colon.
 *
 * @param uid the user; {@link LogLine#NONE} if unknown, as for group and thread
 * @param path the file's path below the root; null if only its inode is known
 * @param inode the file's inode, if the path is null
 * @param name the name of an extended attribute, or of a lookup in an inode without a path
 * @param size the requested size, or NONE
 * @param offset the requested offset, or NONE
 */
public record Call(
    long uid,
    long gid,
    long pid,
    String operation,
    @Nullable FileName path,
    long inode,
    @Nullable FileName name,
    long size,
    long offset) {

  /** The caller, the operation and its arguments. */
  public String text() {
    StringBuilder text = new StringBuilder(128);
    appendTo(text);
    return text.toString();
  }

  /** Appends {@link #text}. */
  void appendTo(StringBuilder text) {
    appendNumber("[uid:", uid, text);
    appendNumber(",gid:", gid, text);
    appendNumber(",pid:", pid, text);
    text.append("] ");
    appendRequest(text);
  }

  /** The operation and its arguments. */
  public String request() {
    StringBuilder text = new StringBuilder(96);
    appendRequest(text);
    return text.toString();
  }

  private void appendRequest(StringBuilder text) {
    text.append(operation).append(" (");
    if (path == null) {
      text.append('#').append(inode);
    } else {
      text.append("\"/").append(readable(path)).append('"');
    }
    FileName of = name;
    if (of != null) {
      text.append(",\"").append(readable(of)).append('"');
    }
    if (size != LogLine.NONE || offset != LogLine.NONE) {
      appendNumber(",", size, text);
      appendNumber(",", offset, text);
    }
    text.append(')');
  }

  /** The file as in the line but without quotes: a path or an inode. */
  public String target() {
    FileName known = path;
    return known == null ? "#" + inode : "/" + readable(known);
  }

  private static void appendNumber(String before, long number, StringBuilder text) {
    text.append(before);
    if (number == LogLine.NONE) {
      text.append('-');
    } else {
      text.append(number);
    }
  }

  /** Also escapes quotes, which end a name in the line. */
  private static String readable(FileName name) {
    return PathText.encode(name).replace("\"", "%22");
  }
}
