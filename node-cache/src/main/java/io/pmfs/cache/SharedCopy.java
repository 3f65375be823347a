package io.pmfs.cache;

import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An active copy, one that grows, is held or may be open. All others are only {@link
 * CopyIndex.Entry entries}. Mutable state is guarded by {@link SharedCopies}.
 */
final class SharedCopy {
  final CopyKey key;

  /** The user charged for the copy. */
  int user;

  State state;
  Path file;

  /** The record of a complete copy. */
  CopyIndex.@Nullable Entry entry;

  /** The disk space charged to the user. */
  Space space;

  /** How many bytes can be read, from the first on. */
  long reached;

  /** The number of handles that connections have. */
  int holders;

  /** The users whose mounts received its file since it was last known to be closed. */
  final List<Integer> given = new ArrayList<>(1);

  /** Whether it waits for a thread. */
  boolean isQueued;

  /** Whether a thread verifies it, or will. */
  boolean isCompared;

  /** The channel of the thread that makes it. */
  @Nullable FileChannel writer;

  List<Waiting> waiting = new ArrayList<>(0);

  enum State {
    GROWING,
    /** Of an earlier run, not yet verified. */
    FOUND,
    WHOLE,
    /** No longer found; uses space while it is open. */
    GONE
  }

  /** A request that is answered once a copy has enough bytes, or has failed. */
  interface Waiting {
    /** How many bytes the request needs. */
    long wanted();

    /** Sends the answer. Called without locks. */
    void answer();
  }

  SharedCopy(CopyKey key, int user, State state, Path file) {
    this.key = key;
    this.user = user;
    this.state = state;
    this.file = file;
    this.space = Space.of(key.size());
  }

  /** Sets the readable bytes. Returns the requests to answer now. */
  List<Waiting> reach(long bytes) {
    reached = bytes;
    List<Waiting> ready = new ArrayList<>();
    waiting.removeIf(one -> one.wanted() <= bytes && ready.add(one));
    return ready;
  }

  /** Removes and returns all requests. */
  List<Waiting> takeWaiting() {
    List<Waiting> all = waiting;
    waiting = new ArrayList<>(0);
    return all;
  }
}
