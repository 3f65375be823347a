package io.pmfs.cli.requests;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PathText;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Who asked for what, as a line of the access log says it before the colon.
 *
 * @param uid who asked; {@link LogLine#NONE} if that is not known, as for group and thread
 * @param path what it was about, below the root; null if only its inode is known
 * @param inode that inode, if the path is null
 * @param name of an extended attribute, or of what was looked up in an inode without a path
 * @param size that was asked for, or NONE
 * @param offset at which, or NONE
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

  /** Asker and what was asked for. */
  public String text() {
    return asker() + " " + request();
  }

  /** User, group and thread. */
  private String asker() {
    return "[uid:" + number(uid) + ",gid:" + number(gid) + ",pid:" + number(pid) + "]";
  }

  /** Operation and arguments. */
  public String request() {
    StringBuilder text = new StringBuilder(operation).append(" (");
    if (path == null) {
      text.append(target());
    } else {
      text.append('"').append(target()).append('"');
    }
    FileName of = name;
    if (of != null) {
      text.append(",\"").append(readable(of)).append('"');
    }
    if (size != LogLine.NONE || offset != LogLine.NONE) {
      text.append(',').append(number(size)).append(',').append(number(offset));
    }
    return text.append(')').toString();
  }

  /** What it was about, as the line has it but for the quotes: a path or an inode. */
  public String target() {
    FileName known = path;
    return known == null ? "#" + inode : "/" + readable(known);
  }

  private static String number(long number) {
    return number == LogLine.NONE ? "-" : Long.toString(number);
  }

  /** Also without what ends the quotes, or a line somewhere, or reorders it. */
  private static String readable(FileName name) {
    String text = PathText.encode(name);
    StringBuilder safe = null;
    for (int i = 0; i < text.length(); ) {
      int c = text.codePointAt(i);
      if (isUnsafe(c)) {
        safe = safe == null ? new StringBuilder(text.substring(0, i)) : safe;
        for (byte b : FileName.of(Character.toString(c)).bytes()) {
          safe.append(String.format(Locale.ROOT, "%%%02X", b & 0xff));
        }
      } else if (safe != null) {
        safe.appendCodePoint(c);
      }
      i += Character.charCount(c);
    }
    return safe == null ? text : safe.toString();
  }

  private static boolean isUnsafe(int c) {
    if (c < 0x80) {
      return c == '"';
    }
    return switch (Character.getType(c)) {
      case Character.CONTROL,
          Character.FORMAT,
          Character.LINE_SEPARATOR,
          Character.PARAGRAPH_SEPARATOR ->
          true;
      default -> false;
    };
  }
}
