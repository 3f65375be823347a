package io.pmfs.shards;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.PriorityQueue;
import org.jspecify.annotations.Nullable;

/**
 * Sorts key-value pairs of bytes with little memory: pairs that do not fit are written to sorted
 * files. Many threads may add pairs; reading starts when all are added. Keys need not be unique.
 */
final class ExternalSort implements AutoCloseable {
  private static final int BUFFER_BYTES = 32 << 10;

  /** How many files are read at once; each takes a buffer and a descriptor. */
  private static final int MAX_RUNS = 128;

  /**
   * The memory of a pair in addition to its bytes: a record, two array headers, a slot in the list.
   */
  private static final int PAIR_BYTES = 72;

  private final Path directory;
  private final String name;
  private final long memoryBytes;
  private final List<Path> runs = new ArrayList<>();
  private List<Pair> pairs = new ArrayList<>();
  private long used;
  private int files;

  /** A pair of byte arrays, which must not change. */
  static final class Pair implements Comparable<Pair> {
    private final byte[] key;
    private final byte[] value;

    Pair(byte[] key, byte[] value) {
      this.key = key;
      this.value = value;
    }

    byte[] key() {
      return key;
    }

    byte[] value() {
      return value;
    }

    @Override
    public int compareTo(Pair other) {
      return Arrays.compareUnsigned(key, other.key);
    }
  }

  /**
   * Sorts within limits.
   *
   * @param directory for the files, whose names begin with {@code name}
   */
  ExternalSort(Path directory, String name, long memoryBytes) {
    this.directory = directory;
    this.name = name;
    this.memoryBytes = memoryBytes;
  }

  synchronized void add(byte[] key, byte[] value) throws IOException {
    pairs.add(new Pair(key, value));
    used += key.length + value.length + PAIR_BYTES;
    if (used >= memoryBytes) {
      spill();
    }
  }

  synchronized boolean isEmpty() {
    return pairs.isEmpty() && runs.isEmpty();
  }

  private void spill() throws IOException {
    pairs.sort(null);
    Path run = directory.resolve(name + "." + files++);
    try (Sorted all = new Sorted(List.of(pairs), List.of())) {
      write(run, all);
    }
    runs.add(run);
    pairs = new ArrayList<>();
    used = 0;
    if (runs.size() == MAX_RUNS) {
      mergeRuns();
    }
  }

  private void mergeRuns() throws IOException {
    Path merged = directory.resolve(name + "." + files++);
    try (Sorted all = new Sorted(List.of(), runs)) {
      write(merged, all);
    }
    for (Path run : runs) {
      Files.delete(run);
    }
    runs.clear();
    runs.add(merged);
  }

  private static void write(Path run, Sorted pairs) throws IOException {
    try (DataOutputStream out =
        new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(run), BUFFER_BYTES))) {
      for (Pair pair = pairs.next(); pair != null; pair = pairs.next()) {
        out.writeInt(pair.key.length);
        out.writeInt(pair.value.length);
        out.write(pair.key);
        out.write(pair.value);
      }
    }
  }

  /** All pairs of several sorts in the order of their keys. */
  static Sorted sorted(List<ExternalSort> sorts) throws IOException {
    List<List<Pair>> lists = new ArrayList<>();
    List<Path> runs = new ArrayList<>();
    for (ExternalSort sort : sorts) {
      synchronized (sort) {
        sort.pairs.sort(null);
        lists.add(sort.pairs);
        runs.addAll(sort.runs);
      }
    }
    return new Sorted(lists, runs);
  }

  @Override
  public synchronized void close() throws IOException {
    pairs = new ArrayList<>();
    for (Path run : runs) {
      Files.deleteIfExists(run);
    }
    runs.clear();
  }

  /** A pass over sorted pairs. Used by one thread. */
  static final class Sorted implements AutoCloseable {
    private final PriorityQueue<Source> sources = new PriorityQueue<>();
    private final List<DataInputStream> opened = new ArrayList<>();

    private Sorted(List<List<Pair>> lists, List<Path> runs) throws IOException {
      try {
        for (List<Pair> list : lists) {
          put(new Source(list.iterator(), null));
        }
        for (Path run : runs) {
          DataInputStream in =
              new DataInputStream(new BufferedInputStream(Files.newInputStream(run), BUFFER_BYTES));
          opened.add(in);
          put(new Source(null, in));
        }
      } catch (Throwable e) {
        close();
        throw e;
      }
    }

    /** The pair with the next key in order; null after the last. */
    @Nullable Pair next() throws IOException {
      Source least = sources.poll();
      if (least == null) {
        return null;
      }
      Pair pair = least.current;
      put(least);
      return pair;
    }

    private void put(Source source) throws IOException {
      if (source.advance()) {
        sources.add(source);
      }
    }

    @Override
    public void close() throws IOException {
      for (DataInputStream in : opened) {
        in.close();
      }
    }
  }

  /** A sorted list or file. */
  private static final class Source implements Comparable<Source> {
    private static final Pair NONE = new Pair(new byte[0], new byte[0]);

    private final @Nullable Iterator<Pair> list;
    private final @Nullable DataInputStream file;
    private Pair current = NONE;

    Source(@Nullable Iterator<Pair> list, @Nullable DataInputStream file) {
      this.list = list;
      this.file = file;
    }

    boolean advance() throws IOException {
      if (list != null) {
        boolean more = list.hasNext();
        current = more ? list.next() : NONE;
        return more;
      }
      return file != null && decode(file);
    }

    private boolean decode(DataInputStream in) throws IOException {
      int keySize;
      try {
        keySize = in.readInt();
      } catch (EOFException e) {
        return false;
      }
      byte[] key = new byte[keySize];
      byte[] value = new byte[in.readInt()];
      in.readFully(key);
      in.readFully(value);
      current = new Pair(key, value);
      return true;
    }

    @Override
    public int compareTo(Source other) {
      return current.compareTo(other.current);
    }
  }
}
