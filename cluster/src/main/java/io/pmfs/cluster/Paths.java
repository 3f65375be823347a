package io.pmfs.cluster;

import io.pmfs.metadata.FileName;
import java.util.List;
import java.util.stream.Stream;

/** Paths below the dataset's root. */
final class Paths {
  private Paths() {}

  /** The names in a path, from the root down. */
  static List<FileName> names(FileName path) {
    return Stream.of(path.toLatin1().split("/", -1))
        .filter(name -> !name.isEmpty())
        .map(FileName::ofLatin1)
        .toList();
  }

  /** The directory that contains a path; for the root, the root. */
  static FileName parent(FileName path) {
    String text = path.toLatin1();
    return FileName.ofLatin1(text.substring(0, Math.max(0, text.lastIndexOf('/'))));
  }

  static FileName name(FileName path) {
    String text = path.toLatin1();
    return FileName.ofLatin1(text.substring(text.lastIndexOf('/') + 1));
  }
}
