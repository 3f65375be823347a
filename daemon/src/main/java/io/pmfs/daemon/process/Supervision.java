package io.pmfs.daemon.process;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.fuse.ReadMode;
import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.mounting.Mounter;
import io.pmfs.fuse.mounting.SharedSession;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.places.Surroundings;
import io.pmfs.settings.SessionSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.time.InstantSource;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The link between a daemon and the supervisor that started it (scripts/pmfs): a descriptor of
 * /dev/fuse that both hold, and a file. While the file names a mount point and a read mode, the
 * session continues: the supervisor starts another daemon if this one dies. The file's modification
 * time is when the daemon last answered.
 */
public final class Supervision {
  public static final String DESCRIPTOR = "PMFS_SESSION_DESCRIPTOR";
  public static final String FILE = "PMFS_SESSION_FILE";

  /** The device number in mountinfo of the mount to take over. */
  static final String DEVICE = "PMFS_SESSION_DEVICE";

  // For a daemon that is not root; see scripts/pmfs-for-user.
  public static final String REQUESTS = "PMFS_SESSION_REQUESTS";
  public static final String ANSWERS = "PMFS_SESSION_ANSWERS";
  static final String ALLOW_OTHER = "PMFS_SESSION_ALLOW_OTHER";

  private final int descriptor;
  private final Path file;
  private final @Nullable ReadMode resumedMode;
  private volatile @Nullable ReadMode writtenMode;
  private final @Nullable String device;
  private final @Nullable Mounter mounter;
  private final boolean allowOther;
  private final Path root;

  /** The process that started this one. */
  private final @Nullable String parent;

  private Supervision(
      Path root,
      int descriptor,
      Path file,
      @Nullable ReadMode resumedMode,
      @Nullable String device,
      @Nullable Mounter mounter,
      boolean allowOther) {
    this.root = root;
    this.parent = parent(root);
    this.descriptor = descriptor;
    this.file = file;
    this.resumedMode = resumedMode;
    this.writtenMode = resumedMode;
    this.device = device;
    this.mounter = mounter;
    this.allowOther = allowOther;
  }

  /** The link described in the environment; null without a supervisor. */
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
          surroundings.root(),
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

  /** This process's parent, from proc(5); null if unknown. */
  private static @Nullable String parent(Path root) {
    try {
      String stat = Files.readString(root.resolve("proc/self/stat"), ISO_8859_1);
      // The name in parentheses may contain spaces and parentheses.
      return stat.substring(stat.lastIndexOf(')') + 1).strip().split(" ", 3)[1];
    } catch (IOException e) {
      return null;
    }
  }

  /**
   * Whether the supervisor lives, as far as is known: a process whose parent dies gets another one.
   */
  public boolean isHeld() {
    String now = parent(root);
    return now == null || parent == null || now.equals(parent);
  }

  /** Whether an earlier daemon mounted, whose choices still hold. */
  public boolean isResumed() {
    return resumedMode != null;
  }

  /** The present read mode of a resumed session; null for a new one. */
  @Nullable
  public ReadMode resumedMode() {
    return resumedMode;
  }

  /** The device number of the session's mount in mountinfo; null if unknown. */
  public @Nullable String device() {
    return device;
  }

  /** Whether the supervisor mounts as root for this user's process. */
  public boolean mountsForUser() {
    return mounter != null;
  }

  /**
   * Asks the supervisor to bind-mount another session of this user at the mount point; returns the
   * reason for a failure, or an empty string.
   *
   * @param place where it is mounted
   */
  public String join(Path place, String otherDevice) {
    return ask(root -> root.join(place, otherDevice));
  }

  /**
   * Asks the supervisor to bind-mount this session where only root has access; returns the reason
   * for a failure, or an empty string.
   *
   * @param place where it is mounted
   */
  public String keep(Path place) {
    return ask(root -> root.keep(place));
  }

  /** Undoes {@link #keep}. */
  public void endKeeping() {
    ask(Mounter::endKeeping);
  }

  private interface Request {
    void send(Mounter root) throws MountException;
  }

  private String ask(Request request) {
    Mounter root = mounter;
    if (root == null) {
      return "no supervisor mounts for this process";
    }
    try {
      request.send(root);
      return "";
    } catch (MountException e) {
      return String.valueOf(e.getMessage());
    }
  }

  /** Whether the supervisor may mount with allow_other. */
  public boolean permitsAllowOther() {
    return allowOther;
  }

  public SharedSession session() {
    return new SharedSession(
        descriptor,
        isResumed(),
        file.resolveSibling(file.getFileName() + ".backing"),
        device,
        mounter);
  }

  /** The file with the bound of this session's inode numbers, kept even if the state is lost. */
  public Path numbers() {
    return file.resolveSibling(file.getFileName() + ".numbers");
  }

  /**
   * Makes the session survive this daemon. Call it again when the read mode changes. Replaces the
   * session file atomically, because an empty one means the end of the session.
   */
  public void begin(Path mountpoint, ReadMode mode, Path logFile) throws IOException {
    if (mode == writtenMode) {
      return;
    }
    // The mount point last: it may contain line feeds; DaemonLog rejects them in the log's path.
    String lines = mode.word() + "\n" + logFile + "\n" + mountpoint + "\n";
    Path next = file.resolveSibling(file.getFileName() + ".new");
    Files.writeString(next, lines, UTF_8);
    Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
    writtenMode = mode;
  }

  /** Keeps the settings for later daemons of the session. */
  public void keep(SessionSettings settings) throws IOException {
    settings.save(settingsFile());
  }

  /**
   * The settings that the session began with; null if it is new or was started by a pmfs that kept
   * none.
   */
  public @Nullable SessionSettings settings() throws MountFailure {
    Path kept = settingsFile();
    if (!Files.exists(kept)) {
      return null;
    }
    try {
      return SessionSettings.load(kept);
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.UNAVAILABLE, kept + ": session settings: " + Reason.of(e), e);
    }
  }

  /** Whether kept settings override the command line, which the supervisor repeats. */
  public boolean hasSettings() {
    return isResumed() && Files.exists(settingsFile());
  }

  private Path settingsFile() {
    return file.resolveSibling(file.getFileName() + ".settings");
  }

  public void touch(InstantSource clock) throws IOException {
    Files.setLastModifiedTime(file, FileTime.from(clock.instant()));
  }

  /** Ends the session. */
  public void end() {
    try {
      Files.deleteIfExists(file);
      Files.deleteIfExists(session().ledger());
      Files.deleteIfExists(settingsFile());
      Files.deleteIfExists(numbers());
    } catch (IOException e) {
      // The supervisor then starts another daemon, which finds no mount and ends.
      org.slf4j.LoggerFactory.getLogger(Supervision.class)
          .warn("{}: cannot be removed: {}", file, Reason.of(e));
    }
  }
}
