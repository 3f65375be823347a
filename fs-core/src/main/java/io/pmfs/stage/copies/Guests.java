package io.pmfs.stage.copies;

import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierStatus;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Predicate;

/**
 * Copies of files that other nodes hold. They use spare room and are evicted when this node's own
 * files need it. They are not stored in bundles, so that evicting any of them frees room.
 */
public final class Guests {
  /** Guests leave this share of a tier to the node's own files. */
  private static final int SPARE_DIVISOR = 16;

  private final Share share;
  private final Namespace namespace;
  private long cursor = Namespace.ROOT; // GUARDED_BY(this)

  /**
   * 1 for each file copied for a reader while this node held it, if other nodes' files are only
   * read ({@link RemoteCopies#NEVER}). Copies of an earlier daemon are unknown.
   */
  private final InodeBytes made = new InodeBytes();

  /** Whether a search found no guest, and none has been added since. */
  private volatile boolean noneLeft;

  public Guests(Share share, Namespace namespace) {
    this.share = share;
    this.namespace = namespace;
  }

  public boolean isGuest(Inode inode) {
    return share.remoteCopies() != RemoteCopies.KEEP && !share.isOwn(inode);
  }

  /** Whether files of other nodes are read without being copied. */
  public boolean isOnlyRead() {
    return share.remoteCopies() == RemoteCopies.NEVER;
  }

  /** Records that a reader caused a copy of a file that this node held then. */
  public void madeForReader(long number) {
    if (isOnlyRead()) {
      made.set(number, (byte) 1);
    }
  }

  /** Records that the copy is wanted here, whichever node holds the file. */
  public void wanted(long number) {
    made.set(number, (byte) 0);
  }

  /**
   * Passes each recorded file that is a guest now, and forgets those for which {@code isDone}
   * returns true. Returns how many remain.
   */
  public long forEachMade(Predicate<Inode> isDone) {
    long left = 0;
    for (long number = made.next(0); number >= 0; number = made.next(number + 1)) {
      Inode inode = namespace.inode(number);
      if (inode == null) {
        wanted(number);
      } else if (isGuest(inode)) {
        if (isDone.test(inode)) {
          wanted(number);
        } else {
          left++;
        }
      }
    }
    return left;
  }

  public static boolean hasRoomToSpare(Tier tier, long size) {
    TierStatus status = tier.status();
    long spare = status.capacityBytes() / SPARE_DIVISOR;
    return status.usedBytes() + size <= status.capacityBytes() - spare;
  }

  /** Records that a guest was copied, or the set of guests changed. */
  public void changed() {
    noneLeft = false;
  }

  /** Whether there may be a guest. */
  boolean mayBeThere() {
    return share.remoteCopies() != RemoteCopies.KEEP && !noneLeft;
  }

  /** The inode of an unpinned guest in a tier; 0 if there is none. */
  synchronized long victim(Tier tier) {
    if (!mayBeThere()) {
      return 0;
    }
    // Set before the search: a guest added during it resets this.
    noneLeft = true;
    long found = find(tier, cursor, Long.MAX_VALUE);
    if (found == 0) {
      found = find(tier, Namespace.ROOT, cursor);
    }
    if (found != 0) {
      noneLeft = false;
      cursor = found + 1;
    }
    return found;
  }

  private long find(Tier tier, long from, long below) {
    AtomicLong found = new AtomicLong();
    namespace.listCopies(
        from,
        (number, copy) -> {
          if (copy.tier().equals(tier.name()) && !copy.pinned()) {
            Inode inode = namespace.inode(number);
            if (inode == null || isGuest(inode)) {
              found.set(number);
            }
          }
          return found.get() == 0 && number < below;
        });
    return found.get();
  }
}
