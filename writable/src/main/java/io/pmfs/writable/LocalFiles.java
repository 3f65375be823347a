package io.pmfs.writable;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.tier.StoreStatistics;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Refusal;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Data files: one for each generation of a file's content, in one of the places. Which place holds
 * a file is in the tables; this class knows paths and room. Safe for use by many threads.
 */
public final class LocalFiles implements AutoCloseable {
  /**
   * The number of the place that is a hidden directory of the source, for what fits nowhere else.
   */
  public static final int AT_SOURCE = 0;

  /** What the tables call a place begins so if another node keeps it. */
  private static final String NODE = "node:";

  private static final Logger log = LoggerFactory.getLogger(LocalFiles.class);

  private static final int FANS = 64;
  private static final int DIRECTORY_MODE = 0700;
  private static final int FILE_MODE = 0600;
  private static final long STATISTICS_MILLIS = 200;

  /** How long new files avoid a place that had no room although it seemed to. */
  private static final long FULL_MILLIS = 1000;

  /** The same for a place whose disk fails. */
  private static final long FAILED_MILLIS = 10_000;

  private static final long TOLD_MILLIS = 60_000;

  /** Directories that were removed while they were open stay open; so many may. */
  private static final int MOST_STALE = 16 * FANS;

  private final OutputCalls calls;
  private final InstantSource clock;
  private final List<Slot> order = new ArrayList<>();
  private final Map<Integer, Slot> slots = new ConcurrentHashMap<>();
  private final @Nullable SourceTree tree;
  private final FileName atSource;
  private volatile boolean isClosed;

  /** Whether the hidden directory of the source may be there without a data file. */
  private volatile boolean mayBeUnused;

  private volatile NodeData.Nodes nodes = LocalFiles::unknownNode;

  /** A place, and what is known of its room. */
  private static final class Slot {
    final int number;
    final Place place;
    final int[] directories = new int[FANS]; // GUARDED_BY(this); -1 if not open
    final AtomicLong used = new AtomicLong();
    final AtomicLong free = new AtomicLong();
    volatile long askedMillis = Long.MIN_VALUE;

    /** Until then no new file is made here, as the last one was refused. */
    volatile long avoidedUntilMillis = Long.MIN_VALUE;

    /** Whether that was because its disk fails. */
    volatile boolean isFailing;

    /** When the log was told last that the place refuses what is written. */
    volatile long toldMillis = Long.MIN_VALUE;

    final List<Integer> stale = new ArrayList<>(); // GUARDED_BY(this); removed, but open

    /** Held by who uses one of the directories; alone by who removes them. */
    final ReentrantReadWriteLock use = new ReentrantReadWriteLock();

    /** The node whose data files these are; null for this one's. */
    final @Nullable UUID node;

    Slot(int number, Place place) {
      this(number, place, null);
    }

    Slot(int number, Place place, @Nullable UUID node) {
      this.number = number;
      this.place = place;
      this.node = node;
      Arrays.fill(directories, -1);
    }
  }

  /** Places keep their numbers in the tables, also those that are no longer among the settings. */
  public LocalFiles(
      OutputCalls calls,
      List<Place> places,
      State state,
      SourceTree tree,
      String mount,
      InstantSource clock)
      throws FsException {
    this.calls = calls;
    this.clock = clock;
    this.tree = tree;
    this.atSource = FileName.of(SourceTree.TEMPORARY + mount + "-data");
    Map<String, Integer> known = new HashMap<>();
    state.scan(
        Tables.PLACES,
        new byte[0],
        (key, value) -> {
          known.put(new String(value, StandardCharsets.UTF_8), (int) Tables.first(key));
          return true;
        });
    slots.put(
        AT_SOURCE, new Slot(AT_SOURCE, new Place("the source", Path.of("/"), Long.MAX_VALUE, 0)));
    for (Place place : places) {
      String path = place.directory().toString();
      Integer number = known.remove(path);
      int counted = number == null ? register(state, path) : number;
      Slot slot = new Slot(counted, place);
      order.add(slot);
      slots.put(counted, slot);
    }
    known.forEach((text, number) -> slots.put(number, formerSlot(number, text)));
  }

  /** The data files that a node keeps for the owner of a mount. */
  public LocalFiles(OutputCalls calls, List<Place> places, InstantSource clock) {
    this.calls = calls;
    this.clock = clock;
    this.tree = null;
    this.atSource = Inode.NO_NAME;
    for (Place place : places) {
      Slot slot = new Slot(order.size() + 1, place);
      order.add(slot);
      slots.put(slot.number, slot);
    }
  }

  private static Slot formerSlot(int number, String text) {
    if (!text.startsWith(NODE)) {
      return new Slot(number, new Place(text, Path.of(text), 0, 0));
    }
    int end = text.indexOf(' ');
    String name = text.substring(end + 1);
    return new Slot(
        number,
        new Place(name, Path.of("/"), 0, 0),
        UUID.fromString(text.substring(NODE.length(), end)));
  }

  @SuppressWarnings("try") // The lock is held, not used.
  private static int register(State state, String path) throws FsException {
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      long number = update.newNumber();
      update.put(Tables.PLACES, Tables.key(number), path.getBytes(StandardCharsets.UTF_8));
      update.commit();
      return Math.toIntExact(number);
    }
  }

  // ---- other nodes

  /** How data files of other nodes are reached. Called once. */
  public void use(NodeData.Nodes others) {
    nodes = others;
  }

  private static NodeData unknownNode(UUID node, String name) throws FsException {
    throw new FsException(
        Errno.EIO, name + " keeps what was written there; mount there and here with --cluster");
  }

  /**
   * The place whose data files a node keeps.
   *
   * @param node its id, which persists
   * @param name for messages
   */
  public int placeOf(UUID node, String name, State state) throws FsException {
    synchronized (order) {
      for (Slot slot : slots.values()) {
        if (node.equals(slot.node)) {
          return slot.number;
        }
      }
      int number = register(state, NODE + node + " " + name);
      slots.put(number, new Slot(number, new Place(name, Path.of("/"), 0, 0), node));
      return number;
    }
  }

  /** A data file that another node keeps; null if this node does. */
  @Nullable
  public RemoteFile remote(int place, long number, long generation) throws FsException {
    Slot slot = slot(place);
    return slot.node == null
        ? null
        : new RemoteFile(
            nodes.on(slot.node, slot.place.name()), slot.place.name(), number, generation);
  }

  /** Whether another node keeps the data files of a place. */
  public boolean isOfNode(int place) throws FsException {
    return slot(place).node != null;
  }

  /** Whether a place is no use once the source has what it has. */
  public boolean isElsewhere(int place) throws FsException {
    return place == AT_SOURCE || isOfNode(place);
  }

  /** The name of a place, for messages. */
  public String name(int place) throws FsException {
    return slot(place).place.name();
  }

  private Slot slot(int place) throws FsException {
    Slot slot = slots.get(place);
    if (slot == null) {
      throw new FsException(Errno.EIO, "no place " + place + " for data files");
    }
    return slot;
  }

  // ---- what a place refuses

  /** The cause of a failure because a place has no room, or because its disk fails. */
  private static final class Refusal extends IOException {
    private static final long serialVersionUID = 1;

    Refusal(FsException answer) {
      super(answer);
    }
  }

  /** Whether a file can go on elsewhere after this failure: another place may take it. */
  public static boolean isRefusal(FsException e) {
    return e.getCause() instanceof Refusal;
  }

  private interface Call<T> {
    T make() throws FsException;
  }

  /** Makes a call that a place may refuse. What the source answers is passed on as it is. */
  private <T> T asked(int place, Call<T> call) throws FsException {
    Slot slot = slot(place);
    try {
      return call.make();
    } catch (FsException e) {
      if (slot.number == AT_SOURCE || isRefusal(e) || !isOfPlace(e.errno())) {
        throw e;
      }
      throw refused(slot, e);
    }
  }

  private static boolean isOfPlace(Errno errno) {
    return switch (errno) {
      case ENOSPC,
          EDQUOT,
          EFBIG,
          EIO,
          EROFS,
          ENOENT,
          ENOTDIR,
          ESTALE,
          ENODEV,
          ENXIO,
          EACCES,
          EPERM ->
          true;
      default -> false;
    };
  }

  private FsException refused(Slot slot, FsException e) {
    boolean isFull =
        e.errno() == Errno.ENOSPC || e.errno() == Errno.EDQUOT || e.errno() == Errno.EFBIG;
    long now = clock.millis();
    slot.isFailing = !isFull;
    slot.avoidedUntilMillis = now + (isFull ? FULL_MILLIS : FAILED_MILLIS);
    long told = slot.toldMillis;
    if (told == Long.MIN_VALUE || now - told >= TOLD_MILLIS || now < told) {
      slot.toldMillis = now;
      log.warn(
          "{} ({}) takes no more: {}; what is written goes on elsewhere",
          slot.place.name(),
          slot.place.directory(),
          e.getMessage());
    }
    return new FsException(e.errno(), slot.place.name(), new Refusal(e));
  }

  // ---- files

  /**
   * Opens a data file for reading and writing, and creates it if it is not there.
   *
   * @throws FsException a {@linkplain #isRefusal refusal} if the place does not take it
   */
  public int open(int place, long number, long generation) throws FsException {
    return asked(
        place,
        () -> {
          try {
            return create(place, number, generation);
          } catch (FsException e) {
            if (e.errno() != Errno.ENOENT || !forgetRemoved(slot(place), fan(number))) {
              throw e;
            }
            return create(place, number, generation);
          }
        });
  }

  private int create(int place, long number, long generation) throws FsException {
    FileName name = name(number, generation);
    int flags = OutputCalls.O_RDWR | OutputCalls.O_CREAT;
    return in(
        place,
        number,
        true,
        directory -> {
          try {
            return calls.open(directory, name, flags | OutputCalls.O_EXCL, FILE_MODE);
          } catch (FsException e) {
            if (e.errno() != Errno.EEXIST) {
              throw e;
            }
            return calls.open(directory, name, flags, FILE_MODE);
          }
        });
  }

  /**
   * Somebody removed a directory that is open here. It stays open: other threads may be using its
   * descriptor.
   *
   * @return whether it is to be made again
   */
  private static boolean forgetRemoved(Slot slot, int fan) {
    synchronized (slot) {
      if (slot.directories[fan] < 0 || slot.stale.size() >= MOST_STALE) {
        return false;
      }
      slot.stale.add(slot.directories[fan]);
      slot.directories[fan] = -1;
      return true;
    }
  }

  /** Opens a data file that must be there for reading and writing. */
  public int openThere(int place, long number, long generation) throws FsException {
    return openThere(place, number, generation, OutputCalls.O_RDWR);
  }

  /** Opens a data file that must be there. */
  public int openForReading(int place, long number, long generation) throws FsException {
    return openThere(place, number, generation, OutputCalls.O_RDONLY);
  }

  private int openThere(int place, long number, long generation, int flags) throws FsException {
    return in(
        place,
        number,
        false,
        directory -> calls.open(directory, name(number, generation), flags, 0));
  }

  /**
   * Writes all of the buffer, which is as it was if that fails.
   *
   * @throws FsException a {@linkplain #isRefusal refusal} if the place has no room
   */
  public void write(int place, int file, ByteBuffer bytes, long offset) throws FsException {
    int start = bytes.position();
    asked(
        place,
        () -> {
          try {
            calls.write(file, bytes, offset);
            return place;
          } catch (FsException e) {
            bytes.position(start);
            throw e;
          }
        });
  }

  /** Sets the size of an open data file; the place may refuse it as it may a write. */
  public void truncate(int place, int file, long size) throws FsException {
    asked(
        place,
        () -> {
          calls.truncate(file, size);
          return place;
        });
  }

  /** Allocates room, or makes holes; the place may refuse it as it may a write. */
  public void allocate(int place, int file, int mode, long offset, long length) throws FsException {
    asked(
        place,
        () -> {
          calls.allocate(file, mode, offset, length);
          return place;
        });
  }

  /** The size of a data file; 0 if it is gone here. Another node may not have its disk yet. */
  public long size(int place, long number, long generation) throws FsException {
    RemoteFile remote = remote(place, number, generation);
    if (remote != null) {
      return size(remote);
    }
    try {
      return in(
              place, number, false, directory -> calls.status(directory, name(number, generation)))
          .attributes()
          .size();
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
      return 0;
    }
  }

  private static long size(RemoteFile remote) throws FsException {
    try {
      return remote.freeze(false).size();
    } catch (FsException e) {
      throw e.errno() == Errno.ENOENT ? remote.missing(e) : e;
    }
  }

  /** Makes sure that a place has the directory in which the data files of a file were. */
  public void checkThere(int place, long number) throws FsException {
    if (isElsewhere(place)) {
      return;
    }
    Path path = slot(place).place.directory();
    int parent = openPlace(path, true);
    try {
      calls.close(calls.openDirectory(parent, fanName(fan(number))));
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
      throw new FsException(
          Errno.ENOENT,
          path + ": the data files of an earlier mount are not there; is its disk mounted?",
          e);
    } finally {
      calls.close(parent);
    }
  }

  public void remove(int place, long number, long generation) throws FsException {
    if (isOfNode(place)) {
      return; // It asks which are unused.
    }
    try {
      FileName name = name(number, generation);
      long bytes =
          in(
              place,
              number,
              false,
              directory -> {
                long blocks = calls.status(directory, name).attributes().blocks();
                calls.unlink(directory, name);
                return blocks * 512;
              });
      mayBeUnused |= place == AT_SOURCE;
      charge(place, -bytes);
      slot(place).avoidedUntilMillis = Long.MIN_VALUE;
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
    }
  }

  public void setTimes(int place, long number, long generation, Instant access, Instant modified)
      throws FsException {
    in(
        place,
        number,
        false,
        directory -> {
          calls.setTimes(directory, name(number, generation), access, modified);
          return place;
        });
  }

  /** Makes the names of data files survive the machine. */
  public void syncName(int place, long number) throws FsException {
    in(
        place,
        number,
        false,
        directory -> {
          calls.sync(directory, false);
          return place;
        });
  }

  private static FileName name(long number, long generation) {
    return FileName.of(Long.toHexString(number) + "." + Long.toHexString(generation));
  }

  private static int fan(long number) {
    return (int) (number & (FANS - 1));
  }

  private static FileName fanName(int fan) {
    return FileName.of("%02x".formatted(fan));
  }

  /** Uses an open directory. */
  private interface Use<T> {
    T of(int directory) throws FsException;
  }

  /**
   * Uses the directory of a data file.
   *
   * @param makes whether it need not be there: a full disk takes no directory, either
   */
  private <T> T in(int place, long number, boolean makes, Use<T> use) throws FsException {
    Slot slot = slot(place);
    slot.use.readLock().lock();
    try {
      return use.of(directory(place, number, makes));
    } finally {
      slot.use.readLock().unlock();
    }
  }

  private int directory(int place, long number, boolean makes) throws FsException {
    Slot slot = slot(place);
    if (slot.node != null) {
      throw new FsException(Errno.EIO, slot.place.name() + " keeps these data files");
    }
    int fan = fan(number);
    synchronized (slot) {
      if (isClosed) {
        throw new FsException(Errno.EIO, slot.place.name() + ": the mount ends");
      }
      if (slot.directories[fan] < 0) {
        slot.directories[fan] = openDirectory(slot, fanName(fan), makes);
      }
      return slot.directories[fan];
    }
  }

  private int openDirectory(Slot slot, FileName name, boolean makes) throws FsException {
    int parent =
        slot.number == AT_SOURCE ? openAtSource(makes) : openPlace(slot.place.directory(), makes);
    try {
      return openMade(parent, name, makes);
    } finally {
      calls.close(parent);
    }
  }

  private int openPlace(Path path, boolean makes) throws FsException {
    try {
      if (makes) {
        Files.createDirectories(path);
      }
    } catch (IOException e) {
      throw new FsException(Errno.EIO, path + ": " + e.getMessage(), e);
    }
    return calls.openRoot(path);
  }

  private int openAtSource(boolean makes) throws FsException {
    try (SourceTree.Directory root = Objects.requireNonNull(tree).open(WritableFileSystem.ROOT)) {
      Stat before = root.status(Inode.NO_NAME);
      int opened = openMade(root.file(), atSource, makes);
      keepTimes(root, before);
      return opened;
    }
  }

  /** The root of the source does not show that something hidden came or went there. */
  private void keepTimes(SourceTree.Directory root, Stat before) {
    try {
      Attributes times = before.attributes();
      Stat now = root.status(Inode.NO_NAME);
      if (!now.attributes().modificationTime().equals(times.modificationTime())) {
        calls.setTimes(root.file(), Inode.NO_NAME, times.accessTime(), times.modificationTime());
      }
    } catch (FsException e) {
      log.debug("the times of the source's root: {}", e.getMessage());
    }
  }

  /** Removes the hidden directory of the source if it has no data file. */
  public void tidyAtSource() {
    SourceTree source = tree;
    Slot slot = slots.get(AT_SOURCE);
    if (!mayBeUnused || source == null || slot == null) {
      return;
    }
    try (SourceTree.Directory root = source.open(WritableFileSystem.ROOT)) {
      if (slot.use.writeLock().tryLock()) {
        try {
          closeDirectories(slot);
          mayBeUnused = false;
          removeAtSource(root);
        } finally {
          slot.use.writeLock().unlock();
        }
      }
    } catch (FsException e) {
      mayBeUnused |= e.errno() != Errno.ENOENT;
      log.debug("{} stays: {}", atSource, e.getMessage());
    }
  }

  private void removeAtSource(SourceTree.Directory root) throws FsException {
    Stat before = root.status(Inode.NO_NAME);
    int top = calls.openDirectory(root.file(), atSource);
    try {
      for (FileName fan : names(top)) {
        calls.rmdir(top, fan);
      }
    } finally {
      calls.close(top);
    }
    calls.rmdir(root.file(), atSource);
    keepTimes(root, before);
  }

  private List<FileName> names(int directory) throws FsException {
    List<FileName> names = new ArrayList<>();
    calls.list(directory, (name, inode, type) -> names.add(name));
    return names;
  }

  private int openMade(int parent, FileName name, boolean makes) throws FsException {
    try {
      if (makes) {
        calls.mkdir(parent, name, DIRECTORY_MODE);
        calls.sync(parent, false);
      }
    } catch (FsException e) {
      if (e.errno() != Errno.EEXIST) {
        throw e;
      }
    }
    return calls.openDirectory(parent, name);
  }

  // ---- room

  /** The first place that seems to take a file of so many bytes; -1 if none does. */
  public int placeWithRoom(long bytes) {
    long now = clock.millis();
    for (Slot slot : order) {
      if (!isAvoided(slot, now) && hasRoom(slot, bytes)) {
        return slot.number;
      }
    }
    return -1;
  }

  private static boolean isAvoided(Slot slot, long now) {
    return now < slot.avoidedUntilMillis && slot.avoidedUntilMillis - now <= FAILED_MILLIS;
  }

  /** Whether a place takes more once the source has what it has: not if all disks fail. */
  public boolean mayGetRoom() {
    long now = clock.millis();
    return order.stream().anyMatch(slot -> !slot.isFailing || !isAvoided(slot, now));
  }

  /** The place for a file that may stay empty. */
  public int firstPlace() {
    return order.get(0).number;
  }

  public boolean hasRoom(int place, long bytes) throws FsException {
    return hasRoom(slot(place), bytes);
  }

  private boolean hasRoom(Slot slot, long bytes) {
    if (slot.number == AT_SOURCE) {
      return true;
    }
    return slot.used.get() + bytes <= slot.place.capacityBytes()
        && freeBytes(slot) - bytes >= slot.place.keepFreeBytes();
  }

  /** What the place's file system has left, as last asked. */
  private long freeBytes(Slot slot) {
    long now = clock.millis();
    long asked = slot.askedMillis;
    if (asked == Long.MIN_VALUE || now - asked >= STATISTICS_MILLIS || now < asked) {
      slot.askedMillis = now;
      try {
        StoreStatistics found = in(slot.number, 0, true, calls::statistics);
        slot.free.set(found.blocksAvailable() * found.fragmentSize());
      } catch (FsException e) {
        refused(slot, e);
        slot.free.set(0);
      }
    }
    return slot.free.get();
  }

  /** Counts room that data files take more, or less if negative. */
  public void charge(int place, long bytes) throws FsException {
    Slot slot = slot(place);
    slot.used.addAndGet(bytes);
    slot.free.addAndGet(-bytes);
  }

  public long usedBytes() {
    return slots.values().stream().mapToLong(slot -> Math.max(0, slot.used.get())).sum();
  }

  /** A data file that a former process left. */
  public interface Left {
    /** Whether the tables know it. */
    boolean isKnown(int place, long number, long generation) throws FsException;
  }

  /**
   * Counts the room of all data files of former processes, and removes those that the state does
   * not know.
   *
   * @param end the first generation that is not a former process's
   */
  public void count(long end, Left left) throws FsException {
    for (Slot slot : slots.values()) {
      if (slot.number == AT_SOURCE
          || slot.node != null
          || !Files.isDirectory(slot.place.directory())) {
        continue;
      }
      Set<String> fans = fans(calls.openRoot(slot.place.directory()));
      for (int fan = 0; fan < FANS; fan++) {
        if (fans.contains("%02x".formatted(fan))) {
          count(slot.number, fan, end, left);
        }
      }
    }
    countAtSource(end, left); // At last: the source may take long.
  }

  private void countAtSource(long end, Left left) throws FsException {
    if (tree == null) {
      return;
    }
    Set<String> fans;
    try {
      fans = fans(openAtSource(false));
    } catch (FsException e) {
      log.debug("{}: {}", atSource, e.getMessage());
      return;
    }
    for (int fan = 0; fan < FANS; fan++) {
      if (fans.contains("%02x".formatted(fan))) {
        count(AT_SOURCE, fan, end, left);
      }
    }
    mayBeUnused = true;
  }

  /** The names in a directory, which is closed. */
  private Set<String> fans(int directory) throws FsException {
    Set<String> found = new HashSet<>();
    try {
      names(directory).forEach(name -> found.add(name.toString()));
    } finally {
      calls.close(directory);
    }
    return found;
  }

  private void count(int place, int fan, long end, Left left) throws FsException {
    in(
        place,
        fan,
        false,
        directory -> {
          count(place, directory, names(directory), end, left);
          return place;
        });
  }

  private void count(int place, int directory, List<FileName> names, long end, Left left)
      throws FsException {
    for (FileName name : names) {
      long[] parsed = parse(name.toString());
      if (parsed.length == 0 || parsed[1] >= end) {
        continue;
      }
      boolean isKnown = left.isKnown(place, parsed[0], parsed[1]);
      try {
        if (isKnown) {
          charge(place, calls.status(directory, name).attributes().blocks() * 512);
        } else {
          log.info(
              "{}: removes a data file that the state does not know: {}",
              slot(place).place.name(),
              name);
          calls.unlink(directory, name);
        }
      } catch (FsException e) {
        if (e.errno() != Errno.ENOENT) {
          throw e;
        }
      }
    }
  }

  /** Number and generation in a name; empty for a foreign name. */
  private static long[] parse(String name) {
    int dot = name.indexOf('.');
    try {
      return dot < 0
          ? new long[0]
          : new long[] {
            Long.parseUnsignedLong(name.substring(0, dot), 16),
            Long.parseUnsignedLong(name.substring(dot + 1), 16)
          };
    } catch (NumberFormatException e) {
      return new long[0];
    }
  }

  @Override
  public void close() {
    isClosed = true;
    for (Slot slot : slots.values()) {
      closeDirectories(slot);
    }
  }

  private void closeDirectories(Slot slot) {
    synchronized (slot) {
      for (int i = 0; i < FANS; i++) {
        if (slot.directories[i] >= 0) {
          calls.close(slot.directories[i]);
          slot.directories[i] = -1;
        }
      }
      slot.stale.forEach(calls::close);
      slot.stale.clear();
    }
  }
}
