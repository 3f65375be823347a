package io.pmfs.shards;

import io.pmfs.metadata.FileName;
import java.io.ByteArrayOutputStream;
import org.jspecify.annotations.Nullable;

/**
 * Converts names in tar files to paths below a directory: one slash between names, none at the
 * ends.
 */
final class MemberPath {
  /** NAME_MAX of linux/limits.h. */
  private static final int MAX_NAME_BYTES = 255;

  /** The limit for keys of the index. */
  private static final int MAX_PATH_BYTES = 1 << 16;

  private MemberPath() {}

  /**
   * The path of a member. Omits leading slashes, "." and empty names, as tar does.
   *
   * @return null if the path leads outside by "..", or no file system could have it
   */
  static @Nullable FileName of(byte[] name) {
    if (name.length > MAX_PATH_BYTES) {
      return null;
    }
    ByteArrayOutputStream path = new ByteArrayOutputStream(name.length);
    int start = 0;
    for (int i = 0; i <= name.length; i++) {
      if (i == name.length || name[i] == '/') {
        if (!add(path, name, start, i - start)) {
          return null;
        }
        start = i + 1;
      } else if (name[i] == 0) {
        return null;
      }
    }
    return FileName.of(path.toByteArray());
  }

  private static boolean add(ByteArrayOutputStream path, byte[] name, int start, int size) {
    boolean dot = size > 0 && name[start] == '.';
    if (size == 0 || (size == 1 && dot)) {
      return true;
    }
    if (size > MAX_NAME_BYTES || (size == 2 && dot && name[start + 1] == '.')) {
      return false;
    }
    if (path.size() > 0) {
      path.write('/');
    }
    path.write(name, start, size);
    return true;
  }

  /** The path below a directory, which may be the root. */
  static FileName below(FileName directory, FileName path) {
    return path.size() == 0 ? directory : directory.resolve(path);
  }
}
