package io.pmfs.daemon;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.fuse.Mounter;
import io.pmfs.fuse.ReadMode;
import io.pmfs.fuse.SharedSession;
import io.pmfs.settings.ExitStatus;
import io.pmfs.settings.MountFailure;
import io.pmfs.settings.Reason;
import io.pmfs.settings.SessionSettings;
import io.pmfs.settings.Surroundings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
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
public final class Supervision {
  public static final String DESCRIPTOR = "PMFS_SESSION_DESCRIPTOR";
  public static final String FILE = "PMFS_SESSION_FILE";

  /** The number of the mount that is taken over, as mountinfo has it. */
  static final String DEVICE = "PMFS_SESSION_DEVICE";

  // For a daemon that is not root; see scripts/pmfs-for-user.
  static final String REQUESTS = "PMFS_SESSION_REQUESTS";
  static final String ANSWERS = "PMFS_SESSION_ANSWERS";
  static final String ALLOW_OTHER = "PMFS_SESSION_ALLOW_OTHER";

  private final int descriptor;
  private final Path file;
  private final @Nullable ReadMode resumedMode;
  private volatile @Nullable ReadMode writtenMode;
  private final @Nullable String device;
  private final @Nullable Mounter mounter;
  private final boolean allowOther;

  private Supervision(
      int descriptor,
      Path file,
      @Nullable ReadMode resumedMode,
      @Nullable String device,
      @Nullable Mounter mounter,
      boolean allowOther) {
    this.descriptor = descriptor;
    this.file = file;
    this.resumedMode = resumedMode;
    this.writtenMode = resumedMode;
    this.device = device;
    this.mounter = mounter;
    this.allowOther = allowOther;
  }

  /** From the environment; null for a daemon that runs alone. */
  public static @Nullable Supervision of(Surroundings surroundings) throws MountFailure {
    String descriptor = surroundings.variable(DESCRIPTOR);
    String path = surroundings.variable(FILE);
    if (descriptor == null || path == null) {
      return null;
    }
    Path file = Path.of(path);
    try {
      List<String> lines = Files.exists(file) ? Files.readAllLines(file, UTF_8) : List.of();
      return new Supervision(
          Integer.parseInt(descriptor),
          file,
          lines.isEmpty() ? null : mode(lines.get(0)),
          surroundings.variable(DEVICE),
          mounter(surroundings),
          surroundings.variable(ALLOW_OTHER) != null);
    } catch (IOException | IllegalArgumentException e) {
      throw new MountFailure(ExitStatus.FAILED, file + ": session file: " + e.getMessage(), e);
    }
  }

  private static @Nullable Mounter mounter(Surroundings surroundings) {
    String requests = surroundings.variable(REQUESTS);
    String answers = surroundings.variable(ANSWERS);
    return requests == null || answers == null
        ? null
        : new Mounter(Integer.parseInt(requests), Integer.parseInt(answers));
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
  public boolean isResumed() {
    return resumedMode != null;
  }

  /** The read mode of the session so far; null if it is new. */
  @Nullable ReadMode resumedMode() {
    return resumedMode;
  }

  /** The number of the session's mount, as mountinfo has it; null if it is not known. */
  public @Nullable String device() {
    return device;
  }

  /** Whether the supervisor, as root, mounts for this process, which is a user's. */
  boolean mountsForUser() {
    return mounter != null;
  }

  /** Whether the supervisor would let other users in; of interest if it mounts. */
  boolean permitsAllowOther() {
    return allowOther;
  }

  SharedSession session() {
    return new SharedSession(
        descriptor,
        isResumed(),
        file.resolveSibling(file.getFileName() + ".backing"),
        device,
        mounter);
  }

  /** Which inode numbers the kernel was told in this session, whatever becomes of the state. */
  Path numbers() {
    return file.resolveSibling(file.getFileName() + ".numbers");
  }

  /**
   * The session is to go on if this daemon dies, in this read mode; called again when that changes.
   * In one step: a file that was empty for a moment would be taken for the session's end if we died
   * in it.
   */
  void begin(Path mountpoint, ReadMode mode, Path logFile) throws IOException {
    if (mode == writtenMode) {
      return;
    }
    // The mount point last: it may hold line feeds, which DaemonLog does not take.
    String lines = mode.word() + "\n" + logFile + "\n" + mountpoint + "\n";
    Path next = file.resolveSibling(file.getFileName() + ".new");
    Files.writeString(next, lines, UTF_8);
    Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
    writtenMode = mode;
  }

  /** What later daemons of the session go by. */
  void keep(SessionSettings settings) throws IOException {
    settings.write(settingsFile());
  }

  /** What the session began with; null if it is new, or began with a pmfs that kept nothing. */
  public @Nullable SessionSettings settings() throws MountFailure {
    Path kept = settingsFile();
    if (!Files.exists(kept)) {
      return null;
    }
    try {
      return SessionSettings.read(kept);
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.UNAVAILABLE, kept + ": session settings: " + Reason.of(e), e);
    }
  }

  /** Whether what is on the command line, which the supervisor repeats, does not count. */
  public boolean hasSettings() {
    return isResumed() && Files.exists(settingsFile());
  }

  private Path settingsFile() {
    return file.resolveSibling(file.getFileName() + ".settings");
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
      Files.deleteIfExists(settingsFile());
      Files.deleteIfExists(numbers());
    } catch (IOException e) {
      // The supervisor then starts a daemon that finds nothing mounted, and ends.
      org.slf4j.LoggerFactory.getLogger(Supervision.class)
          .warn("{}: cannot be removed: {}", file, Reason.of(e));
    }
  }
}
