package io.pmfs.cache;

import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One copy of the node's cache that grows, or that somebody uses or may have open. Others are
 * {@link CopyIndex.Entry entries} alone. Everything that changes is guarded by its {@link
 * SharedCopies}.
 */
final class SharedCopy {
  final CopyKey key;

  /** The user for whom it was made, to whose share it counts. */
  int user;

  State state;
  Path file;

  /** Its record while it is kept. */
  CopyIndex.@Nullable Entry entry;

  /** What it takes of the disk, and of its user's share. */
  Space space;

  /** The bytes that can be read, from the first on. */
  long reached;

  /** The connections that may have it open, each as often as it does. */
  int holders;

  /** The users whose mounts got its file since nobody had that open. */
  final List<Integer> given = new ArrayList<>(1);

  /** Whether it waits for a thread: others come first. */
  boolean isQueued;

  /** What the thread writes to that makes it. */
  @Nullable FileChannel writer;

  List<Waiting> waiting = new ArrayList<>(0);

  /** What a copy is. */
  enum State {
    GROWING,
    /** Of an earlier run: not compared with its checksum yet. */
    FOUND,
    WHOLE,
    /** It cannot be found any more; it needs room while somebody has it open. */
    GONE
  }

  /** A question that is answered when a copy has some size, or has failed. */
  interface Waiting {
    /** Up to which byte the copy is wanted. */
    long wanted();

    /** Answers. Called without locks. */
    void answer();
  }

  SharedCopy(CopyKey key, int user, State state, Path file) {
    this.key = key;
    this.user = user;
    this.state = state;
    this.file = file;
    this.space = Space.of(key.size());
  }

  /** It has so many bytes. Returns whose questions to answer now. */
  List<Waiting> reach(long bytes) {
    reached = bytes;
    List<Waiting> ready = new ArrayList<>();
    waiting.removeIf(one -> one.wanted() <= bytes && ready.add(one));
    return ready;
  }

  /** All questions, which are to be answered now. */
  List<Waiting> takeWaiting() {
    List<Waiting> all = waiting;
    waiting = new ArrayList<>(0);
    return all;
  }
}
