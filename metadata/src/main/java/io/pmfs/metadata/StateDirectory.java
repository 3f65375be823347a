package io.pmfs.metadata;

import io.pmfs.table.Change;
import io.pmfs.table.Family;
import io.pmfs.table.Faults;
import io.pmfs.table.RocksFiles;
import io.pmfs.table.RocksStore;
import io.pmfs.table.StateException;
import io.pmfs.table.StateException.Kind;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The directory in which a namespace is recorded, in any condition: intact, damaged, or on a disk
 * that cannot be written or read. A damaged state is set aside under another name, never repaired.
 */
final class StateDirectory {
  /** A file that reserves room, so that the database can finish its work when the disk is full. */
  static final String BALLAST = "ballast";

  static final int BALLAST_BYTES = 4 << 20;

  /** How many set-aside directories are kept. */
  static final int KEPT = 3;

  private static final String DAMAGED = ".damaged-";
  private static final String NEWER = ".newer-";

  private final Path directory;
  private final String source;
  private final long memoryBytes;
  private final Consumer<String> log;
  private final Faults faults;

  /**
   * A directory that need not exist.
   *
   * @param source the identity of the dataset
   * @param log receives a line for each problem
   */
  StateDirectory(
      Path directory, String source, long memoryBytes, Consumer<String> log, Faults faults) {
    this.faults = faults;
    this.directory = directory;
    this.source = source;
    this.memoryBytes = memoryBytes;
    this.log = log;
  }

  /**
   * What the directory contains.
   *
   * @param store null if nothing can be read
   * @param failure why nothing can be written; null if it can
   * @param isNew whether nothing was recorded there
   * @param opening the last opening; 0 if there was none
   * @param session the session of the last opening, as recorded; null if unknown
   * @param sessionStart the first opening of that session
   * @param next the first number that was not assigned
   * @param boot the machine's boot in which the last session ended cleanly; null if it did not
   */
  record Found(
      @Nullable RocksStore store,
      @Nullable String failure,
      boolean isNew,
      long opening,
      @Nullable FileName session,
      long sessionStart,
      long next,
      @Nullable FileName boot) {}

  /**
   * Opens the directory as far as possible.
   *
   * @throws StateException if it belongs to another dataset or is in use
   */
  Found open() {
    for (boolean again = false; ; again = true) {
      StateException failed;
      try {
        return load(
            RocksFiles.open(directory, List.of(Family.values()), memoryBytes, faults), null);
      } catch (StateException e) {
        failed = e;
      }
      switch (failed.kind()) {
        case REFUSED, IN_USE -> throw failed;
        case DAMAGED, NEWER -> {
          if (again || !setAside(failed)) {
            return nothing(failed);
          }
        }
        case UNAVAILABLE -> {
          return readable(failed);
        }
      }
    }
  }

  private Found readable(StateException failed) {
    try {
      return load(
          RocksFiles.openReadOnly(directory, List.of(Family.values()), memoryBytes, faults),
          failed.getMessage());
    } catch (StateException e) {
      if (e.kind() == Kind.REFUSED) {
        throw e;
      }
      return nothing(failed);
    }
  }

  private static Found nothing(StateException failed) {
    return new Found(null, String.valueOf(failed.getMessage()), true, 0, null, 1, 0, null);
  }

  private Found load(RocksStore store, @Nullable String failure) {
    try {
      boolean isNew = isNew(store);
      return new Found(
          store,
          failure,
          isNew,
          number(store, Keys.OPENING, 0),
          bytes(store, Keys.SESSION_ID),
          number(store, Keys.SESSION_START, 1),
          number(store, Keys.NEXT_NUMBER, InodeNumbers.FIRST),
          bytes(store, Keys.CLEAN_STOP));
    } catch (Throwable e) {
      store.close();
      throw e;
    }
  }

  private boolean isNew(RocksStore store) {
    byte[] value = store.get(Family.DEFAULT, Keys.SUPERBLOCK);
    if (value == null) {
      try (RocksStore.Cursor any = store.cursor(Family.DEFAULT, new byte[0], false)) {
        if (any.isValid()) {
          throw RocksFiles.foreign(directory.toString());
        }
        return true;
      }
    }
    Values.Superblock superblock = Values.superblock(value);
    if (superblock == null) {
      throw RocksFiles.foreign(directory.toString());
    }
    if (superblock.format() != Values.FORMAT) {
      throw new StateException(
          "%s has format %d; this pmfs reads format %d"
              .formatted(directory, superblock.format(), Values.FORMAT),
          null,
          Kind.NEWER);
    }
    if (!superblock.source().equals(source)) {
      throw new StateException(
          "%s belongs to the dataset %s, not to %s; choose another state directory, or remove this one"
              .formatted(directory, superblock.source(), source),
          null);
    }
    return false;
  }

  private static long number(RocksStore store, byte[] key, long otherwise) {
    byte[] value = store.get(Family.DEFAULT, key);
    Long number = value == null ? (Long) otherwise : Values.number(value);
    if (number == null) {
      throw store.damaged("a counter");
    }
    return number;
  }

  private static @Nullable FileName bytes(RocksStore store, byte[] key) {
    byte[] value = store.get(Family.DEFAULT, key);
    byte[] bytes = value == null ? null : Values.content(value);
    return bytes == null ? null : FileName.wrap(bytes);
  }

  Change superblock() {
    byte[] superblock = Values.superblock(new Values.Superblock(Values.FORMAT, source));
    return Change.put(Family.DEFAULT, Keys.SUPERBLOCK, superblock);
  }

  /** The exception for damage that was found while reading. */
  StateException damage() {
    return new StateException("the namespace in " + directory + " is damaged", null, Kind.DAMAGED);
  }

  /** Renames the directory, so that a new one can be created; returns whether that succeeded. */
  boolean setAside(StateException why) {
    String suffix = why.kind() == Kind.NEWER ? NEWER : DAMAGED;
    try {
      List<Path> before = setAside(suffix);
      long last = before.isEmpty() ? 0 : number(before.get(before.size() - 1), suffix);
      Path aside = directory.resolveSibling(directory.getFileName() + suffix + (last + 1));
      Files.move(directory, aside);
      log.accept(
          "%s; it is set aside as %s, and a new state is started"
              .formatted(why.getMessage(), aside.getFileName()));
      if (suffix.equals(DAMAGED)) {
        // The rename added one to the list.
        for (int i = 0; i <= before.size() - KEPT; i++) {
          delete(before.get(i));
        }
      }
      return true;
    } catch (IOException e) {
      log.accept("%s; it cannot be set aside: %s".formatted(why.getMessage(), e));
      return false;
    }
  }

  private List<Path> setAside(String suffix) throws IOException {
    String name = directory.getFileName() + suffix;
    try (Stream<Path> siblings = Files.list(directory.toAbsolutePath().getParent())) {
      return siblings
          .filter(path -> String.valueOf(path.getFileName()).startsWith(name))
          .filter(path -> number(path, suffix) > 0)
          .sorted(Comparator.comparingLong(path -> number(path, suffix)))
          .toList();
    }
  }

  private static long number(Path path, String suffix) {
    String name = String.valueOf(path.getFileName());
    String digits = name.substring(name.lastIndexOf(suffix) + suffix.length());
    return digits.matches("[0-9]{1,9}") ? Long.parseLong(digits) : 0;
  }

  private static void delete(Path directory) throws IOException {
    try (Stream<Path> files = Files.walk(directory)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
  }

  /** Frees the reserved room, so that work in progress can finish on a full disk. */
  void releaseBallast() {
    try {
      Files.deleteIfExists(directory.resolve(BALLAST));
    } catch (IOException e) {
      // The disk has failed, and freeing more room would not help.
    }
  }

  /** Reserves the room; fails while the disk is full or cannot be written. */
  void takeBallast() throws IOException {
    Path ballast = directory.resolve(BALLAST);
    faults.beforeFile();
    Files.createDirectories(directory);
    if (Files.exists(ballast) && Files.size(ballast) == BALLAST_BYTES) {
      Files.delete(ballast);
    }
    boolean taken = false;
    try (FileChannel file =
        FileChannel.open(
            ballast,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE)) {
      ByteBuffer zeros = ByteBuffer.allocate(64 * 1024);
      for (int written = 0; written < BALLAST_BYTES; written += zeros.capacity()) {
        zeros.clear();
        while (zeros.hasRemaining()) {
          file.write(zeros);
        }
      }
      file.force(true);
      taken = true;
    } finally {
      if (!taken) {
        Files.deleteIfExists(ballast);
      }
    }
  }
}
