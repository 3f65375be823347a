package io.pmfs.mounts;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.Gson;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.Reason;
import io.pmfs.places.NotOwnException;
import io.pmfs.places.OwnPath;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The mounts on this node, as files in the runtime directory: for each mount point a lock that the
 * daemon holds while it lives, a record and a control socket. A daemon whose mount is detached has
 * files of its own, because another daemon may mount at the same place.
 */
public final class Registry {
  /** The longest path that fits sockaddr_un, unix(7). */
  private static final int MAX_SOCKET_PATH = 107;

  static final int MAX_ENTRY_BYTES = 64 << 10;
  static final String ENTRY = ".json";
  static final String LOCK = ".lock";
  static final String SOCKET = ".sock";
  private static final String HOLDER = ".holder";
  private static final String KEPT = ".kept";
  private static final String OWN_KEPT = "[0-9a-f]{16}-0-\\d+\\.kept";

  /** As scripts/pmfs-for-user makes them. */
  private static final String KEPT_BY_SUPERVISOR = "\\d+-[A-Za-z0-9]{10}\\.kept";

  private static final String STAND_IN = ".standin";

  private static final long OWN = -1;

  private final Path directory;

  /**
   * The owner of the registry if it is another user; else -1. Such a registry is only read, and
   * trusted only to find that user's daemon.
   */
  private final long stranger;

  private final @Nullable StrangersRecords strangers;

  private Registry(Path directory, long stranger) {
    this.directory = directory;
    this.stranger = stranger;
    this.strangers = stranger == OWN ? null : new StrangersRecords(directory, stranger);
  }

  public static Registry own(Path directory) {
    return new Registry(directory, OWN);
  }

  /** For root: another user's directory, written by that user's daemons. */
  static Registry ofUser(Path directory, long uid) {
    return new Registry(directory, uid);
  }

  /** Opens the user's runtime directory, creating it if necessary. */
  public static Registry open(Surroundings surroundings) throws MountFailure {
    Path directory = directory(surroundings);
    try {
      OwnPath.of(surroundings).directory(directory);
      requirePrivate(directory, surroundings);
    } catch (IOException e) {
      throw new MountFailure(
          e instanceof NotOwnException ? ExitStatus.USAGE : ExitStatus.FAILED,
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

  /**
   * The directory must belong to the user, not even to root, because the user's processes write to
   * it.
   */
  private static void requirePrivate(Path directory, Surroundings surroundings)
      throws IOException, MountFailure {
    int owner = (Integer) Files.getAttribute(directory, "unix:uid", LinkOption.NOFOLLOW_LINKS);
    int mode = (Integer) Files.getAttribute(directory, "unix:mode", LinkOption.NOFOLLOW_LINKS);
    if (owner != surroundings.uid() || !Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)) {
      throw new MountFailure(
          ExitStatus.USAGE,
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

  public long stranger() {
    return stranger;
  }

  /** A short name for a mount point, stable across processes. */
  public static String nameOf(Path mountpoint) {
    try {
      byte[] digest =
          MessageDigest.getInstance("SHA-256").digest(mountpoint.toString().getBytes(UTF_8));
      return HexFormat.of().formatHex(digest, 0, 8);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }

  /** The name for a mount that was detached from a mount point. */
  static String nameOf(Path mountpoint, @Nullable String device) {
    return nameOf(mountpoint) + "-" + String.valueOf(device).replace(':', '-');
  }

  public Path socketOf(Path mountpoint) throws MountFailure {
    return socketOf(nameOf(mountpoint));
  }

  private Path socketOf(String name) throws MountFailure {
    Path socket = directory.resolve(name + SOCKET);
    if (socket.toString().getBytes(UTF_8).length > MAX_SOCKET_PATH) {
      throw MountFailure.usage(
          directory + ": too long for a socket's path; set PMFS_RUNTIME_DIR to a shorter one");
    }
    return socket;
  }

  /** Claims the mount point for this process; null if a living process has it. */
  public @Nullable Registration register(Path mountpoint) throws MountFailure {
    Registration taken = register(nameOf(mountpoint), false);
    if (taken != null) {
      clearDetached(mountpoint);
    }
    return taken;
  }

  /**
   * Claims the files of a mount that was detached from a mount point. The device number, which the
   * kernel does not reuse before the last file is closed, distinguishes such mounts.
   */
  public @Nullable Registration registerDetached(Path mountpoint, @Nullable String device)
      throws MountFailure {
    return register(nameOf(mountpoint, device), true);
  }

  /** Removes the files of daemons that were killed while their mounts were detached. */
  private void clearDetached(Path mountpoint) throws MountFailure {
    for (Path file : entryFiles()) {
      String name = nameIn(file);
      if (name.startsWith(nameOf(mountpoint) + "-") && !isRunning(name)) {
        Registration dead = register(name, true);
        if (dead != null) {
          dead.close();
        }
      }
    }
  }

  private @Nullable Registration register(String name, boolean isDetached) throws MountFailure {
    Path lockFile = lockFile(name);
    try {
      FileChannel channel = openLock(lockFile);
      FileLock lock = tryLock(channel);
      if (lock == null) {
        channel.close();
        return null;
      }
      channel.truncate(0);
      Registration registration =
          new Registration(channel, entryFile(name), socketOf(name), isDetached ? lockFile : null);
      registration.clear();
      return registration;
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, lockFile + ": " + Reason.of(e), e);
    }
  }

  /**
   * The lock file, which is empty until a daemon {@link Registration#markSaved}. That of a mount
   * point is never removed: otherwise another process could open it, and two processes hold the
   * lock of old and new file. Only daemons of one session lock the file of a detached mount, and
   * the last one removes it. A daemon must not reopen the file, because closing any descriptor of a
   * file drops all the process's locks on it, fcntl(2).
   */
  private Path lockFile(String name) {
    return directory.resolve(name + LOCK);
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

  private Path entryFile(String name) {
    return directory.resolve(name + ENTRY);
  }

  private static String nameIn(Path entryFile) {
    return Objects.requireNonNull(nameIn(String.valueOf(entryFile.getFileName())));
  }

  /** The base name of a daemon's files; null if this is not the name of a record. */
  static @Nullable String nameIn(String file) {
    return file.endsWith(ENTRY) ? file.substring(0, file.length() - ENTRY.length()) : null;
  }

  public @Nullable DaemonRecord find(Path mountpoint) throws MountFailure {
    return find(nameOf(mountpoint));
  }

  private @Nullable DaemonRecord find(String name) throws MountFailure {
    if (strangers != null) {
      return strange(strangers, records -> Optional.ofNullable(records.find(name))).orElse(null);
    }
    DaemonRecord entry = last(name);
    return entry != null && isRunning(name) ? entry : null;
  }

  /**
   * Like {@link #find}, including a dead daemon, whose files show that a successor is about to
   * start.
   */
  @Nullable DaemonRecord last(Path mountpoint) throws MountFailure {
    return last(nameOf(mountpoint));
  }

  private @Nullable DaemonRecord last(String name) throws MountFailure {
    return strangers == null
        ? load(entryFile(name))
        : strange(strangers, records -> Optional.ofNullable(records.last(name))).orElse(null);
  }

  private interface Question<T> {
    T ask(StrangersRecords records) throws IOException;
  }

  private <T> T strange(StrangersRecords records, Question<T> question) throws MountFailure {
    try {
      return question.ask(records);
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.FAILED, "%s: user %d: %s".formatted(directory, stranger, Reason.of(e)), e);
    }
  }

  private static boolean isPlain(Path file) {
    return Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS);
  }

  /** Whether a living process has claimed the mount point: starting, serving or stopping. */
  public boolean isRunning(Path mountpoint) throws MountFailure {
    return isRunning(nameOf(mountpoint));
  }

  private boolean isRunning(String name) throws MountFailure {
    if (strangers != null) {
      return strange(strangers, records -> records.isRunning(name));
    }
    Path lockFile = lockFile(name);
    try (FileChannel channel =
        FileChannel.open(lockFile, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
      return tryLock(channel) == null;
    } catch (NoSuchFileException e) {
      return false;
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, lockFile + ": " + Reason.of(e), e);
    }
  }

  /**
   * Whether a daemon has ended and called {@link Registration#markSaved}. Call only for a mount
   * point that this process has not claimed.
   */
  boolean isSaved(DaemonRecord ended) throws MountFailure {
    String name = nameOf(Path.of(ended.mountpoint()));
    String pid = Long.toString(ended.pid());
    if (strangers != null) {
      return strange(strangers, records -> records.isSaved(name, pid));
    }
    try {
      return Files.readString(lockFile(name), UTF_8).equals(pid);
    } catch (IOException e) {
      return false;
    }
  }

  /** Removes the files of a dead daemon whose mount is gone. */
  void forget(Path mountpoint) throws MountFailure {
    Registration taken =
        strangers == null && last(mountpoint) != null ? register(mountpoint) : null;
    if (taken != null) {
      taken.close();
    }
  }

  /** The running daemons of attached mounts, sorted by mount point. */
  public List<DaemonRecord> running() throws MountFailure {
    return running(false);
  }

  /** The daemons of detached mounts with open files, sorted by mount point. */
  public List<DaemonRecord> detached() throws MountFailure {
    return running(true);
  }

  private List<DaemonRecord> running(boolean isDetached) throws MountFailure {
    List<DaemonRecord> running = new ArrayList<>();
    for (DaemonRecord entry : living(problem -> {})) {
      if (entry.detached() == isDetached) {
        running.add(entry);
      }
    }
    running.sort(Comparator.comparing(DaemonRecord::mountpoint));
    return running;
  }

  /**
   * All running daemons.
   *
   * @param problem receives at most one line, about unusable records of another user
   */
  List<DaemonRecord> living(Consumer<String> problem) throws MountFailure {
    if (strangers != null) {
      StrangersRecords.Living living = strange(strangers, StrangersRecords::living);
      if (living.problem() != null) {
        problem.accept("%s: user %d: %s".formatted(directory, stranger, living.problem()));
      }
      return living.entries();
    }
    List<DaemonRecord> living = new ArrayList<>();
    for (Path file : entryFiles()) {
      DaemonRecord entry = find(nameIn(file));
      if (entry != null) {
        living.add(entry);
      }
    }
    return living;
  }

  /** All daemons, including dead ones; only running ones of another user. */
  public List<KnownDaemon> known() throws MountFailure {
    return known(problem -> {});
  }

  /**
   * Like {@link #known()}.
   *
   * @param problem as for {@link #living}
   */
  List<KnownDaemon> known(Consumer<String> problem) throws MountFailure {
    List<KnownDaemon> known = new ArrayList<>();
    if (strangers != null) {
      living(problem)
          .forEach(entry -> known.add(new KnownDaemon(entry, true, directory, stranger)));
      return known;
    }
    for (Path file : entryFiles()) {
      DaemonRecord entry = load(file);
      if (entry != null) {
        known.add(new KnownDaemon(entry, isRunning(nameIn(file)), directory, stranger));
      }
    }
    return known;
  }

  /**
   * The daemon of a mount's session, even if it died; null if there is none. A daemon may have
   * several mount points, and only one of them names its files here.
   */
  public @Nullable KnownDaemon ofMount(MountTable.Mount mount) throws MountFailure {
    KnownDaemon dead = null;
    for (KnownDaemon one : known()) {
      if (one.daemon().shows(mount)) {
        if (one.running()) {
          return one;
        }
        dead = one;
      }
    }
    return dead;
  }

  /** Records who mounted at a mount point; replaces an earlier record. */
  public void hold(MountOwner holder) throws MountFailure {
    record(holderFile(Path.of(holder.mountpoint())), holder);
  }

  /** Records that a mount of the source itself replaced a session. */
  public void standIn(StandIn mount) throws MountFailure {
    record(directory.resolve(nameOf(Path.of(mount.mountpoint())) + STAND_IN), mount);
  }

  /** The recorded mounts of sources that exist now; none in another user's registry. */
  public List<StandIn> standIns(MountTable mounts) throws MountFailure {
    List<StandIn> there = new ArrayList<>();
    for (Path file : strangers == null ? files(STAND_IN) : List.<Path>of()) {
      StandIn standIn = load(file, StandIn.class);
      if (isThere(standIn, mounts)) {
        there.add(Objects.requireNonNull(standIn));
      }
    }
    return there;
  }

  private static boolean isThere(@Nullable StandIn standIn, MountTable mounts) {
    if (standIn == null || !standIn.isSound()) {
      return false;
    }
    MountTable.Mount mount = mounts.at(Path.of(standIn.mountpoint()));
    return mount != null && standIn.is(mount);
  }

  private static void record(Path file, Object what) throws MountFailure {
    try {
      Path next = file.resolveSibling(file.getFileName() + ".new");
      Files.writeString(next, new Gson().toJson(what), UTF_8);
      Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, file + ": " + Reason.of(e), e);
    }
  }

  /** Who mounted the session with this device number at a mount point; null if not recorded. */
  @Nullable MountOwner holder(Path mountpoint, String device) throws MountFailure {
    Path file = holderFile(mountpoint);
    String name = String.valueOf(file.getFileName());
    MountOwner holder =
        strangers == null
            ? isPlain(file) ? sound(load(file, MountOwner.class)) : null
            : strange(strangers, records -> Optional.ofNullable(records.holder(name))).orElse(null);
    return holder != null && device.equals(holder.device()) ? holder : null;
  }

  /**
   * Removes the files of daemons that died with all their mounts, except locks. A detached daemon's
   * successor publishes its own.
   */
  private void sweepDead(MountTable mounts) throws MountFailure {
    for (Path file : entryFiles()) {
      DaemonRecord entry = load(file);
      if (entry != null
          && entry.device() != null
          && mounts.places(entry::shows).isEmpty()
          && !isRunning(nameIn(file))) {
        Registration dead = register(nameIn(file), false);
        if (dead != null) {
          dead.close();
        }
      }
    }
  }

  /**
   * Removes the records of mounts that are gone. A daemon may call this only while it has no claim
   * here.
   */
  public void sweepHolders(Surroundings surroundings) throws MountFailure {
    // Read after the list, because a record is written after mounting.
    List<Path> files = files(HOLDER);
    List<Path> standIns = files(STAND_IN);
    MountTable mounts = surroundings.mounts();
    for (Path file : files) {
      MountOwner holder = sound(load(file, MountOwner.class));
      MountTable.Mount mount = holder == null ? null : mounts.at(Path.of(holder.mountpoint()));
      if (mount == null || holder == null || !mount.device().equals(holder.device())) {
        remove(file);
      }
    }
    for (Path file : standIns) {
      if (!isThere(load(file, StandIn.class), mounts)) {
        remove(file);
      }
    }
    sweepDead(mounts);
  }

  private static void remove(Path file) throws MountFailure {
    try {
      Files.deleteIfExists(file);
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, file + ": " + Reason.of(e), e);
    }
  }

  /** The mount point of a session that stays without a user's mount point. */
  public Path keptPlace(Path mountpoint, String device) {
    return directory.resolve(nameOf(mountpoint, device) + KEPT);
  }

  /** All such mount points, mounted or not, except those of supervisors that mount for users. */
  public List<Path> keptPlaces() throws MountFailure {
    return files(KEPT).stream()
        .filter(place -> String.valueOf(place.getFileName()).matches(OWN_KEPT))
        .toList();
  }

  /** Whether a mount point is named like a {@link #keptPlace} of any registry or supervisor. */
  public static boolean isKept(Path mountpoint) {
    String name = String.valueOf(mountpoint.getFileName());
    return name.matches(OWN_KEPT) || name.matches(KEPT_BY_SUPERVISOR);
  }

  private Path holderFile(Path mountpoint) {
    return directory.resolve(nameOf(mountpoint) + HOLDER);
  }

  private List<Path> entryFiles() throws MountFailure {
    return files(ENTRY);
  }

  private List<Path> files(String ending) throws MountFailure {
    try (Stream<Path> listing = Files.list(directory)) {
      return listing.filter(p -> p.toString().endsWith(ending)).sorted().toList();
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, directory + ": " + Reason.of(e), e);
    }
  }

  private static @Nullable MountOwner sound(@Nullable MountOwner holder) {
    return holder != null && holder.isSound() ? holder : null;
  }

  private static @Nullable DaemonRecord load(Path file) {
    DaemonRecord entry = load(file, DaemonRecord.class);
    return entry != null && entry.isSound() ? entry : null;
  }

  private static <T> @Nullable T load(Path file, Class<T> type) {
    try {
      return Files.size(file) > MAX_ENTRY_BYTES ? null : parse(Files.readString(file, UTF_8), type);
    } catch (IOException e) {
      return null;
    }
  }

  /** Parses a record, without checking its fields; null if the text is malformed. */
  static <T> @Nullable T parse(String text, Class<T> type) {
    try {
      return new Gson().fromJson(text, type);
    } catch (RuntimeException e) {
      return null; // not JSON, or with fields of other types
    }
  }
}
