package io.pmfs.cli.control;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.metadata.FileName;
import io.pmfs.mounts.DaemonRecord;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Makes paths below a dataset's mount point or source relative to its root. Treats paths as text:
 * keeps their bytes and never resolves links.
 */
public final class DatasetPaths {
  private final DaemonRecord mount;
  private final String mountpoint;
  private final String source;

  DatasetPaths(DaemonRecord mount) {
    this.mount = mount;
    this.mountpoint = latin1(mount.mountpoint());
    this.source = latin1(mount.source());
  }

  /** Whether both have the same daemon. */
  boolean isSameAs(DatasetPaths other) {
    return mount.socket().equals(other.mount.socket());
  }

  private static String latin1(String text) {
    return new String(text.getBytes(UTF_8), ISO_8859_1);
  }

  public DaemonRecord mount() {
    return mount;
  }

  /**
   * Normalizes an absolute path: no {@code .}, {@code ..} or redundant slashes. Each char is a
   * byte.
   */
  static String normal(String absolute) {
    List<String> names = new ArrayList<>();
    for (String name : absolute.split("/", -1)) {
      if (name.equals("..")) {
        if (!names.isEmpty()) {
          names.remove(names.size() - 1);
        }
      } else if (!name.isEmpty() && !name.equals(".")) {
        names.add(name);
      }
    }
    return "/" + String.join("/", names);
  }

  /** The path below the root, empty for the root itself; null outside of this dataset. */
  @Nullable FileName relative(String normal) {
    String below = below(mountpoint, normal);
    String relative = below == null ? below(source, normal) : below;
    return relative == null ? null : FileName.ofLatin1(relative);
  }

  /** The length of the path's prefix that names the dataset; -1 outside of this dataset. */
  int match(String normal) {
    if (below(mountpoint, normal) != null) {
      return mountpoint.length();
    }
    return below(source, normal) == null ? -1 : source.length();
  }

  private static @Nullable String below(String directory, String path) {
    if (path.equals(directory)) {
      return "";
    }
    String prefix = directory.endsWith("/") ? directory : directory + "/";
    return path.startsWith(prefix) ? path.substring(prefix.length()) : null;
  }

  /** A path from a list, absolute or relative to the root; null if it leads outside. */
  @Nullable FileName listed(String path) {
    if (path.startsWith("/")) {
      return relative(normal(path));
    }
    int depth = 0;
    for (String name : path.split("/", -1)) {
      if (name.equals("..")) {
        depth--;
      } else if (!name.isEmpty() && !name.equals(".")) {
        depth++;
      }
      if (depth < 0) {
        return null;
      }
    }
    return FileName.ofLatin1(normal(path).substring(1));
  }

  @Override
  public String toString() {
    return mount.mountpoint() + " and its source " + mount.source();
  }
}
