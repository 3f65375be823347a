package io.pmfs.fuse.system;

import java.nio.file.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Descriptors 1 and 2, to which the JVM itself writes thread dumps and fatal errors. */
public final class StandardStreams {
  private static final Logger log = LoggerFactory.getLogger(StandardStreams.class);

  private static final int O_WRONLY = 1;
  private static final int O_APPEND = 0x400;

  private StandardStreams() {}

  /** Makes both append to an existing file. */
  public static void redirectTo(Path path) {
    LibC libc = LibC.INSTANCE;
    int file =
        libc.openat(
            Posix.AT_FDCWD,
            Posix.terminated(path.toString()),
            O_WRONLY | O_APPEND | Posix.O_CLOEXEC);
    if (file < 0) {
      log.warn("{}: {}; thread dumps will be lost", path, Posix.errno());
      return;
    }
    libc.dup2(file, 1);
    libc.dup2(file, 2);
    libc.close(file);
  }
}
