package io.pmfs.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.fuse.ReadMode;
import io.pmfs.fuse.SharedSession;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.InstantSource;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What ties a daemon to the supervisor that started it (scripts/pmfs): a descriptor of /dev/fuse
 * that both hold, and a file. The file names mount point and read mode while the session is to go
 * on, so that the supervisor starts another daemon when this one is gone; its modification time
 * says when the daemon was last seen to answer.
 */
final class Supervision {
  static final String DESCRIPTOR = "PMFS_SESSION_DESCRIPTOR";
  static final String FILE = "PMFS_SESSION_FILE";

  private final int descriptor;
  private final Path file;
  private final @Nullable ReadMode resumedMode;

  private Supervision(int descriptor, Path file, @Nullable ReadMode resumedMode) {
    this.descriptor = descriptor;
    this.file = file;
    this.resumedMode = resumedMode;
  }

  /** From the environment; null for a daemon that runs alone. */
  static @Nullable Supervision of(Surroundings surroundings) throws MountFailure {
    String descriptor = surroundings.variable(DESCRIPTOR);
    String path = surroundings.variable(FILE);
    if (descriptor == null || path == null) {
      return null;
    }
    Path file = Path.of(path);
    try {
      List<String> lines = Files.exists(file) ? Files.readAllLines(file, UTF_8) : List.of();
      return new Supervision(
          Integer.parseInt(descriptor), file, lines.size() < 2 ? null : mode(lines.get(1)));
    } catch (IOException | IllegalArgumentException e) {
      throw new MountFailure(ExitStatus.FAILED, file + ": session file: " + e.getMessage(), e);
    }
  }

  private static ReadMode mode(String word) {
    for (ReadMode mode : ReadMode.values()) {
      if (mode.word().equals(word)) {
        return mode;
      }
    }
    throw new IllegalArgumentException("unknown read mode " + word);
  }

  /**
   * Whether an earlier daemon mounted; then what follows from its choices must not be chosen again.
   */
  boolean isResumed() {
    return resumedMode != null;
  }

  /** The read mode of the session so far; null if it is new. */
  @Nullable ReadMode resumedMode() {
    return resumedMode;
  }

  SharedSession session() {
    return new SharedSession(
        descriptor, isResumed(), file.resolveSibling(file.getFileName() + ".backing"));
  }

  /** The session is to go on if this daemon dies. */
  void begin(Path mountpoint, ReadMode mode, Path logFile) throws IOException {
    if (isResumed()) {
      return; // a file that is written anew is empty for a moment, in which we must not die
    }
    Files.writeString(file, mountpoint + "\n" + mode.word() + "\n" + logFile + "\n", UTF_8);
  }

  /** The daemon answers. */
  void touch(InstantSource clock) throws IOException {
    Files.setLastModifiedTime(file, FileTime.from(clock.instant()));
  }

  /** The session has ended, or is to. */
  void end() {
    try {
      Files.deleteIfExists(file);
      Files.deleteIfExists(session().ledger());
    } catch (IOException e) {
      // The supervisor then starts a daemon that finds nothing mounted, and ends.
      org.slf4j.LoggerFactory.getLogger(Supervision.class)
          .warn("{}: cannot be removed: {}", file, Reason.of(e));
    }
  }
}
