package io.pmfs.tier;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Small copies one behind the other in larger files, so that none costs a file of its own and none
 * is rounded up. A bundle is appended to and never changed; it goes when none of its copies is
 * wanted any more. Safe for use by many threads.
 */
final class Bundles implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Bundles.class);

  /** Bundles of which less than this share is wanted are worth being emptied: 3/4. */
  private static final int WANTED_QUARTERS = 3;

  private final Path directory;
  private final long fullBytes;
  private final boolean synced;
  private final Room room;

  private final TreeMap<Long, Bundle> bundles = new TreeMap<>(); // GUARDED_BY(this)
  private @Nullable Bundle newest; // GUARDED_BY(this); what is appended to

  /** None is used twice: an extent that is looked at late must not be another copy's. */
  private long lastNumber; // GUARDED_BY(this)

  private boolean counted; // GUARDED_BY(this); whether it is known what is wanted

  /**
   * Finds what is there; {@link #count} must be called before anything is appended.
   *
   * @param directory made if absent
   * @param fullBytes a bundle of so many bytes or more is not appended to
   * @param synced whether a copy is to outlive a loss of power once it is appended
   */
  Bundles(Path directory, long fullBytes, boolean synced, Room room) throws IOException {
    this.directory = directory;
    this.fullBytes = fullBytes;
    this.synced = synced;
    this.room = room;
    Files.createDirectories(directory, DirectoryTier.DIRECTORY_MODE);
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory)) {
      for (Path file : files) {
        long number = number(file);
        if (number > 0) {
          bundles.put(number, new Bundle(file, number, Files.size(file)));
          lastNumber = Math.max(lastNumber, number);
        }
      }
    }
  }

  /** Whether there are none. */
  synchronized boolean isEmpty() {
    return bundles.isEmpty();
  }

  /**
   * Takes over how many bytes of each bundle are wanted, and removes those of which none are.
   *
   * @return the bytes that the others take
   */
  synchronized long count(Map<Long, Long> wantedBytes) throws IOException {
    counted = true;
    long bytes = 0;
    for (Bundle bundle : List.copyOf(bundles.values())) {
      bundle.wanted = wantedBytes.getOrDefault(bundle.number, 0L);
      if (bundle.wanted > 0) {
        bytes += Room.charge(bundle.end);
        newest = bundle;
      } else {
        bundles.remove(bundle.number);
        bundle.delete();
      }
    }
    return bytes;
  }

  /** What they take. */
  synchronized long bytes() {
    return bundles.values().stream().mapToLong(bundle -> Room.charge(bundle.end)).sum();
  }

  /** How many bytes of each bundle are wanted; none if that is not known. */
  synchronized Map<Long, Long> wantedBytes() {
    Map<Long, Long> wanted = new HashMap<>();
    if (counted) {
      bundles.forEach((number, bundle) -> wanted.put(number, bundle.wanted));
    }
    return wanted;
  }

  /**
   * Appends a whole copy.
   *
   * @param reserved bytes of room, at least what a file of that size would take; taken over, unless
   *     this throws
   */
  Extent append(ByteBuffer copy, long reserved) throws IOException {
    Bundle bundle;
    Extent extent;
    synchronized (this) {
      bundle = appendable();
      extent = new Extent(bundle.number, bundle.end, copy.remaining());
      long taken = Room.charge(extent.end()) - Room.charge(bundle.end);
      bundle.end = extent.end();
      bundle.wanted += extent.size();
      bundle.users++;
      room.settle(taken);
      room.release(reserved - taken);
    }
    boolean written = false;
    try {
      FileChannel file = bundle.file();
      DirectoryTier.writeAll(file, copy, extent.offset());
      if (synced) {
        file.force(false);
      }
      written = true;
      return extent;
    } finally {
      leave(bundle);
      if (!written) {
        // The reservation is the caller's again, whatever of it reached the disk.
        drop(extent);
        room.found(reserved);
        room.settle(-reserved);
      }
    }
  }

  private Bundle appendable() throws IOException { // GUARDED_BY(this)
    Bundle current = newest;
    if (current == null || current.end >= fullBytes) {
      lastNumber++;
      current = new Bundle(directory.resolve(name(lastNumber)), lastNumber, 0);
      current.create();
      bundles.put(lastNumber, current);
      newest = current;
    }
    return current;
  }

  /** Opens a copy; null if its bundle is not there. */
  @Nullable CopyReader open(Extent extent) throws IOException {
    Bundle bundle;
    long available;
    synchronized (this) {
      bundle = bundles.get(extent.bundle());
      if (bundle == null) {
        return null;
      }
      bundle.users++;
      available = Math.max(0, Math.min(extent.size(), bundle.end - extent.offset()));
    }
    boolean opened = false;
    try {
      CopyReader reader = new Reader(bundle, bundle.file(), extent.offset(), available);
      opened = true;
      return reader;
    } catch (NoSuchFileException e) {
      return null;
    } finally {
      if (!opened) {
        leave(bundle);
      }
    }
  }

  /** A copy is not wanted any more. */
  synchronized void drop(Extent extent) {
    Bundle bundle = bundles.get(extent.bundle());
    if (bundle == null || !counted) {
      return;
    }
    bundle.wanted = Math.max(0, bundle.wanted - extent.size());
    if (bundle.wanted == 0) {
      bundles.remove(bundle.number);
      if (newest == bundle) {
        newest = null;
      }
      room.free(Room.charge(bundle.end));
      bundle.delete();
    }
  }

  /**
   * Bundles that are worth being emptied by moving what is wanted of them, sparsest first; that is
   * no more than fills one.
   */
  synchronized Set<Long> sparse() {
    List<Bundle> sparse = new ArrayList<>(counted ? bundles.values() : List.of());
    sparse.removeIf(
        bundle ->
            (bundle == newest && bundle.end < fullBytes)
                || bundle.wanted >= bundle.end / 4 * WANTED_QUARTERS);
    sparse.sort(Comparator.comparingLong(bundle -> bundle.wanted));
    long moved = 0;
    int count = 0;
    while (count < sparse.size() && (count == 0 || moved < fullBytes)) {
      moved += sparse.get(count++).wanted;
    }
    return sparse.subList(0, count).stream()
        .map(bundle -> bundle.number)
        .collect(Collectors.toUnmodifiableSet());
  }

  private void leave(Bundle bundle) {
    synchronized (this) {
      bundle.users--;
      if (!bundle.isDone()) {
        return;
      }
    }
    bundle.close();
  }

  @Override
  public synchronized void close() {
    // Readers close theirs, the last of each the file.
    for (Bundle bundle : bundles.values()) {
      bundle.retired = true;
      if (bundle.isDone()) {
        bundle.close();
      }
    }
  }

  /** A copy, for as long as somebody has it open. */
  private final class Reader implements CopyReader {
    private final Bundle bundle;
    private final FileChannel file;
    private final long start;
    private final long size;
    private final AtomicBoolean closed = new AtomicBoolean();

    Reader(Bundle bundle, FileChannel file, long start, long size) {
      this.bundle = bundle;
      this.file = file;
      this.start = start;
      this.size = size;
    }

    @Override
    public long size() {
      return size;
    }

    @Override
    public ReadResult read(long offset, int count) {
      return new ReadResult.FileRange(file, start + offset, count);
    }

    @Override
    public void close() {
      if (closed.compareAndSet(false, true)) {
        leave(bundle);
      }
    }
  }

  private static String name(long number) {
    return "%06x".formatted(number);
  }

  /** The number that a file is named after; -1 for a foreign file. */
  private static long number(Path file) {
    String name = file.getFileName().toString();
    try {
      long number = Long.parseLong(name, 16);
      return number > 0 && name.equals(name(number)) ? number : -1;
    } catch (NumberFormatException e) {
      return -1;
    }
  }

  /** A file, open from its first use until it is deleted and everybody has left it. */
  private static final class Bundle {
    final long number;
    private final Path path;
    private @Nullable FileChannel file; // GUARDED_BY(this)

    long end; // GUARDED_BY(Bundles.this)
    long wanted; // GUARDED_BY(Bundles.this)
    int users; // GUARDED_BY(Bundles.this)
    boolean retired; // GUARDED_BY(Bundles.this)

    Bundle(Path path, long number, long end) {
      this.path = path;
      this.number = number;
      this.end = end;
    }

    synchronized void create() throws IOException {
      file = FileChannel.open(path, Set.of(READ, WRITE, CREATE), DirectoryTier.FILE_MODE);
    }

    /** The file; opened again if an interrupted thread had it closed. */
    synchronized FileChannel file() throws IOException {
      FileChannel open = file;
      if (open == null || !open.isOpen()) {
        open = FileChannel.open(path, READ, WRITE);
        file = open;
      }
      return open;
    }

    boolean isDone() {
      return retired && users == 0;
    }

    void delete() {
      retired = true;
      try {
        Files.deleteIfExists(path);
      } catch (IOException e) {
        log.warn("{} is not removed: {}", path, e.getMessage());
      }
      if (isDone()) {
        close();
      }
    }

    synchronized void close() {
      FileChannel open = file;
      file = null;
      if (open != null) {
        try {
          open.close();
        } catch (IOException e) {
          log.debug("closing {}: {}", path, e.getMessage());
        }
      }
    }
  }
}
