package io.pmfs.cache;

import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** One copy of the node's cache. Everything that changes is guarded by its {@link SharedCopies}. */
final class SharedCopy {
  private static final int UNIT_BYTES = 4096;

  final CopyKey key;

  /** Other files of the source with equal content. Their copies are names of this one's file. */
  private List<CopyKey> equal = List.of();

  /** The user for whom it was made, to whose share it counts. */
  final int user;

  State state;
  Path file;
  int checksum;

  /** The bytes that can be read, from the first on. */
  long reached;

  /** The connections that may have it open, each as often as it does, and those who compare it. */
  int holders;

  /** Whether it waits for a thread: others come first. */
  boolean isQueued;

  /** Whether a thread makes it, or has made it. */
  boolean isBegun;

  Instant used;
  List<Waiting> waiting = new ArrayList<>();

  /** What a copy is. */
  enum State {
    GROWING,
    /** Of an earlier run: not compared with its checksum yet. */
    FOUND,
    WHOLE,
    /** Whole, but an equal copy has its key, and its file is a name of that one's. */
    REPLACED,
    /** Of no use any more; it needs room while somebody may have it open. */
    GONE
  }

  /** A question that is answered when a copy has some size, or has failed. */
  interface Waiting {
    /** Up to which byte the copy is wanted. */
    long wanted();

    /** Answers. Called without locks. */
    void answer();
  }

  SharedCopy(CopyKey key, int user, State state, Path file, Instant used) {
    this.key = key;
    this.user = user;
    this.state = state;
    this.file = file;
    this.used = used;
  }

  /** Adds a file of the source with equal content. */
  void addEqual(CopyKey other) {
    if (equal.isEmpty()) {
      equal = new ArrayList<>(1);
    }
    equal.add(other);
  }

  /** The other files of the source with equal content. */
  List<CopyKey> equal() {
    return equal;
  }

  /** Whether it has all bytes and can be found. */
  boolean isKept() {
    return state == State.WHOLE || state == State.FOUND;
  }

  /** Whether it cannot be found any more. */
  boolean isOver() {
    return state == State.REPLACED || state == State.GONE;
  }

  /** The room that it needs. */
  long room() {
    return room(key.size());
  }

  static long room(long size) {
    return (size + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
  }
}
