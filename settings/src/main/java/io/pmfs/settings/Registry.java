package io.pmfs.settings;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The mounts that run on this node, as files in the runtime directory: for each mount point a lock
 * that the daemon holds while it lives, a description and a control socket.
 */
public final class Registry {
  /** The longest path that fits sockaddr_un, unix(7). */
  private static final int MAX_SOCKET_PATH = 107;

  private static final long MAX_ENTRY_BYTES = 64 << 10;

  /**
   * A running daemon.
   *
   * @param device the device number of its mount, as in mountinfo; null if unknown
   */
  public record Entry(
      String mountpoint,
      String source,
      long pid,
      String socket,
      String logFile,
      @Nullable String device) {
    public Entry(String mountpoint, String source, long pid, String socket, String logFile) {
      this(mountpoint, source, pid, socket, logFile, null);
    }

    /** Whether this daemon may serve the given mount, which is at its mount point. */
    public boolean isOf(MountTable.Mount mount) {
      return device == null || device.equals(mount.device());
    }
  }

  /**
   * A daemon in the registry.
   *
   * @param running false if it died and its files are still there
   * @param owner the owner of the registry, if root reads another user's; else -1
   */
  public record Known(Entry entry, boolean running, Path directory, long owner) {}

  private static final long OWN = -1;

  private final Path directory;

  /**
   * The owner of the registry if it is not the process's own. Such a registry is only read, and
   * trusted only to find that user's daemon.
   */
  private final long stranger;

  private Registry(Path directory, long stranger) {
    this.directory = directory;
    this.stranger = stranger;
  }

  /** An existing directory that belongs to this process's user. */
  public static Registry own(Path directory) {
    return new Registry(directory, OWN);
  }

  /** For root: another user's directory, which that user's daemons write. */
  static Registry ofUser(Path directory, long uid) {
    return new Registry(directory, uid);
  }

  /** Opens the user's runtime directory, and makes it if necessary. */
  public static Registry open(Surroundings surroundings) throws MountFailure {
    Path directory = directory(surroundings);
    try {
      Files.createDirectories(
          directory,
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
      requirePrivate(directory, surroundings);
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.FAILED,
          directory + ": runtime directory: " + Reason.of(e) + "; set PMFS_RUNTIME_DIR to another",
          e);
    }
    return own(directory);
  }

  /** The user's runtime directory, which may not exist. */
  public static Path directory(Surroundings surroundings) {
    String given = surroundings.variable("PMFS_RUNTIME_DIR");
    if (given != null) {
      return surroundings.resolve(given);
    }
    return Path.of(surroundings.isRoot() ? "/run/pmfs" : "/tmp/pmfs-" + surroundings.uid());
  }

  /** In /tmp an attacker may have made the directory first, so that we talk to their socket. */
  private static void requirePrivate(Path directory, Surroundings surroundings)
      throws IOException, MountFailure {
    int owner = (Integer) Files.getAttribute(directory, "unix:uid", LinkOption.NOFOLLOW_LINKS);
    int mode = (Integer) Files.getAttribute(directory, "unix:mode", LinkOption.NOFOLLOW_LINKS);
    if (owner != surroundings.uid() || !Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)) {
      throw new MountFailure(
          ExitStatus.FAILED,
          directory
              + ": runtime directory: belongs to user "
              + Files.getOwner(directory, LinkOption.NOFOLLOW_LINKS).getName()
              + ", so it is not trusted; set PMFS_RUNTIME_DIR to another");
    }
    if ((mode & 0077) != 0) {
      Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwx------"));
    }
  }

  public Path directory() {
    return directory;
  }

  /** The owner, if root reads another user's registry; else -1. */
  public long stranger() {
    return stranger;
  }

  /** A short name for a mount point, the same in every process. */
  public static String nameOf(Path mountpoint) {
    try {
      byte[] digest =
          MessageDigest.getInstance("SHA-256").digest(mountpoint.toString().getBytes(UTF_8));
      return HexFormat.of().formatHex(digest, 0, 8);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }

  public Path socketOf(Path mountpoint) throws MountFailure {
    Path socket = directory.resolve(nameOf(mountpoint) + ".sock");
    if (socket.toString().getBytes(UTF_8).length > MAX_SOCKET_PATH) {
      throw MountFailure.usage(
          directory + ": too long for a socket's path; set PMFS_RUNTIME_DIR to a shorter one");
    }
    return socket;
  }

  /** Takes the mount point for this process, or returns null if a living process has it. */
  public @Nullable Registration register(Path mountpoint) throws MountFailure {
    Path lockFile = lockFile(mountpoint);
    try {
      FileChannel channel = openLock(lockFile);
      FileLock lock = tryLock(channel);
      if (lock == null) {
        channel.close();
        return null;
      }
      Registration registration =
          new Registration(channel, entryFile(mountpoint), socketOf(mountpoint));
      registration.clear();
      return registration;
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, lockFile + ": " + Reason.of(e), e);
    }
  }

  /**
   * The lock's file. It is empty and never removed: if a process removed a file that others are
   * about to lock, two of them could hold the lock. The daemon must not open it again, because
   * closing any descriptor of a file drops all the process's locks on it, fcntl(2).
   */
  private Path lockFile(Path mountpoint) {
    return directory.resolve(nameOf(mountpoint) + ".lock");
  }

  private static FileChannel openLock(Path lockFile) throws IOException {
    return FileChannel.open(
        lockFile,
        Set.of(StandardOpenOption.CREATE, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS),
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
  }

  private static @Nullable FileLock tryLock(FileChannel channel) throws IOException {
    try {
      return channel.tryLock();
    } catch (OverlappingFileLockException heldInThisProcess) {
      return null;
    }
  }

  private Path entryFile(Path mountpoint) {
    return directory.resolve(nameOf(mountpoint) + ".json");
  }

  /** The daemon that serves a mount point, or null. */
  public @Nullable Entry find(Path mountpoint) throws MountFailure {
    Entry entry = last(mountpoint);
    return entry != null && isRunning(mountpoint) ? entry : null;
  }

  /** The same, or one that died: its files tell commands that a successor is about to start. */
  @Nullable Entry last(Path mountpoint) throws MountFailure {
    return stranger == OWN ? read(entryFile(mountpoint)) : lastOfStranger(mountpoint);
  }

  private @Nullable Entry lastOfStranger(Path mountpoint) throws MountFailure {
    Path socket = socketOf(mountpoint);
    if (!isPlain(entryFile(mountpoint)) || !isTheirs(socket)) {
      return null;
    }
    Entry entry = read(entryFile(mountpoint));
    if (entry == null || !entry.mountpoint().equals(mountpoint.toString())) {
      return null;
    }
    return new Entry(
        entry.mountpoint(),
        entry.source(),
        entry.pid(),
        socket.toString(),
        entry.logFile(),
        entry.device());
  }

  private static boolean isPlain(Path file) {
    return Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS);
  }

  private boolean isTheirs(Path socket) {
    try {
      int owner = (Integer) Files.getAttribute(socket, "unix:uid", LinkOption.NOFOLLOW_LINKS);
      return Integer.toUnsignedLong(owner) == stranger && !Files.isSymbolicLink(socket);
    } catch (IOException e) {
      return false;
    }
  }

  /** Whether a living process has the mount point: starting, serving or stopping. */
  public boolean isRunning(Path mountpoint) throws MountFailure {
    Path lockFile = lockFile(mountpoint);
    // Opening a file of another type could block, or have effects that only root can cause.
    if (stranger != OWN && !isPlain(lockFile)) {
      return false;
    }
    try (FileChannel channel =
        FileChannel.open(lockFile, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
      return tryLock(channel) == null;
    } catch (NoSuchFileException e) {
      return false;
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, lockFile + ": " + Reason.of(e), e);
    }
  }

  /** Removes the files of a dead daemon whose mount is gone for good. */
  void forget(Path mountpoint) throws MountFailure {
    Registration taken = stranger == OWN && last(mountpoint) != null ? register(mountpoint) : null;
    if (taken != null) {
      taken.close();
    }
  }

  /** All running daemons of this user, by mount point. */
  public List<Entry> running() throws MountFailure {
    List<Entry> running = new ArrayList<>();
    for (Path file : entryFiles()) {
      Entry entry = stranger == OWN || isPlain(file) ? read(file) : null;
      entry = entry == null ? null : find(Path.of(entry.mountpoint()));
      if (entry != null) {
        running.add(entry);
      }
    }
    running.sort(Comparator.comparing(Entry::mountpoint));
    return running;
  }

  /** The same with those that died, unchanged; from another user's registry only the living. */
  public List<Known> known() throws MountFailure {
    List<Known> known = new ArrayList<>();
    if (stranger != OWN) {
      running().forEach(entry -> known.add(new Known(entry, true, directory, stranger)));
      return known;
    }
    for (Path file : entryFiles()) {
      Entry entry = read(file);
      if (entry != null) {
        boolean running = isRunning(Path.of(entry.mountpoint()));
        known.add(new Known(entry, running, directory, stranger));
      }
    }
    return known;
  }

  private List<Path> entryFiles() throws MountFailure {
    try (Stream<Path> listing = Files.list(directory)) {
      return listing.filter(p -> p.toString().endsWith(".json")).sorted().toList();
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, directory + ": " + Reason.of(e), e);
    }
  }

  private static @Nullable Entry read(Path file) {
    try {
      if (Files.size(file) > MAX_ENTRY_BYTES) {
        return null;
      }
      Entry entry = new Gson().fromJson(Files.readString(file, UTF_8), Entry.class);
      return entry == null || entry.mountpoint() == null || entry.socket() == null ? null : entry;
    } catch (IOException | JsonSyntaxException e) {
      return null;
    }
  }
}
