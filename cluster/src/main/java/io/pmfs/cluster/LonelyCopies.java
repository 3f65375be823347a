package io.pmfs.cluster;

import io.pmfs.cluster.client.Patience;
import io.pmfs.cluster.client.PeerClient;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.DaemonThread;
import io.pmfs.stage.Stager;
import io.pmfs.stage.formats.Blocks;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Drops copies of other nodes' files that this node made while those were away, although it
 * normally copies only its own files. An owner without a copy is first asked for the file, so that
 * it takes this node's; nothing is read from the source again. Thread-safe.
 */
final class LonelyCopies implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(LonelyCopies.class);

  /** Members join one after another; ownership is known when all are there. */
  private static final Duration FIRST_PAUSE = Duration.ofSeconds(2);

  private static final Duration LONGEST_PAUSE = Duration.ofMinutes(10);

  private final Stager stager;
  private final Namespace namespace;
  private final Owners owners;
  private final PeerClient client;
  private final Predicate<Member> isSuspected;
  private boolean hasChanged; // GUARDED_BY(this)
  private boolean isClosed; // GUARDED_BY(this)

  /**
   * @param isSuspected which nodes are not asked now
   */
  LonelyCopies(
      Stager stager,
      Namespace namespace,
      Owners owners,
      PeerClient client,
      Predicate<Member> isSuspected) {
    this.stager = stager;
    this.namespace = namespace;
    this.owners = owners;
    this.client = client;
    this.isSuspected = isSuspected;
  }

  void start() {
    try {
      DaemonThread.lasting("pmfs-lonely-copies", this::run).start();
    } catch (OutOfMemoryError e) {
      log.warn("cannot start the thread that drops copies of other nodes' files: {}", e.toString());
    }
  }

  synchronized void changed() {
    hasChanged = true;
    notifyAll();
  }

  /** Looks after its start, and after each change. */
  private void run() {
    changed();
    try {
      while (awaitChange()) {
        Duration pause = FIRST_PAUSE;
        long left = 1;
        while (left > 0 && isQuiet(pause)) {
          left = look();
          Duration doubled = pause.multipliedBy(2);
          pause = doubled.compareTo(LONGEST_PAUSE) < 0 ? doubled : LONGEST_PAUSE;
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Drops the copies that can be dropped now; returns how many are left. */
  long look() {
    try {
      return stager.dropGuests(this::isHeld);
    } catch (RuntimeException | Error e) {
      log.warn("cannot drop copies of other nodes' files now: {}", e.toString());
      log.debug("dropping copies", e);
      return 1;
    }
  }

  private synchronized boolean awaitChange() throws InterruptedException {
    while (!hasChanged && !isClosed) {
      wait();
    }
    hasChanged = false;
    return !isClosed;
  }

  /** Waits; returns false if there was a change meanwhile, or this is closed. */
  private synchronized boolean isQuiet(Duration pause) throws InterruptedException {
    long end = System.nanoTime() + pause.toNanos();
    while (!hasChanged && !isClosed) {
      long left = (end - System.nanoTime()) / 1_000_000;
      if (left <= 0) {
        return true;
      }
      wait(left);
    }
    return false;
  }

  /** Whether an owner has a whole copy. One without makes a copy, for the next time. */
  private boolean isHeld(Inode inode) {
    FileName path = namespace.path(inode.number());
    if (path == null) {
      return true;
    }
    for (Member owner : owners.of(path)) {
      if (isOver()) {
        return false;
      }
      if (!owners.isSelf(owner) && !isSuspected.test(owner)) {
        if (gives(owner, path, inode, true) && hasAll(owner, path, inode)) {
          return true;
        }
        gives(owner, path, inode, false);
      }
    }
    return false;
  }

  private synchronized boolean isOver() {
    return isClosed;
  }

  private boolean gives(Member owner, FileName path, Inode inode, boolean onlyCopies) {
    try {
      client.fetch(
          owner,
          path,
          inode.attributes().version(),
          0,
          ByteBuffer.allocateDirect((int) Math.min(1, inode.attributes().size())),
          onlyCopies,
          Patience.endless());
      return true;
    } catch (PeerException e) {
      log.debug("{} of {}: {}", path, owner, e.getMessage());
      return false;
    }
  }

  /** Whether an owner needs no block from here: it gives also what it is still copying. */
  private boolean hasAll(Member owner, FileName path, Inode inode) {
    SourceVersion version = inode.attributes().version();
    int count = Blocks.count(version);
    try {
      HeldBlocks held =
          client.blocks(owner, path, version, HeldBlocks.Wanted.NOTHING, Patience.endless());
      return held.hasAll(count);
    } catch (PeerException e) {
      log.debug("blocks of {} of {}: {}", path, owner, e.getMessage());
      return false;
    }
  }

  @Override
  public synchronized void close() {
    isClosed = true;
    notifyAll();
  }
}
