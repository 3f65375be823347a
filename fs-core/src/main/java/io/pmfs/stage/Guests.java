package io.pmfs.stage;

import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierStatus;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The copies of files that other nodes hold for all: they take room that is left over, and give it
 * back when this node's own files need it. None is in a bundle, so that each makes room by itself.
 */
final class Guests {
  /** Guests leave this share of a tier to the node's own files. */
  private static final int SPARE_DIVISOR = 16;

  private final Share share;
  private final Namespace namespace;
  private long cursor = Namespace.ROOT; // GUARDED_BY(this)

  /** Whether no guest was found since the last one came. */
  private volatile boolean noneLeft;

  Guests(Share share, Namespace namespace) {
    this.share = share;
    this.namespace = namespace;
  }

  /** Whether a copy of the file would be a guest. */
  boolean isGuest(Inode inode) {
    return share.remoteCopies() != RemoteCopies.KEEP && !share.isOwn(inode);
  }

  /** Whether a guest is not to be copied because it is read. */
  boolean isOnlyRead() {
    return share.remoteCopies() == RemoteCopies.NEVER;
  }

  /** Whether a tier has room that a guest may take. */
  static boolean hasRoomToSpare(Tier tier, long size) {
    TierStatus status = tier.status();
    long spare = status.capacityBytes() / SPARE_DIVISOR;
    return status.usedBytes() + size <= status.capacityBytes() - spare;
  }

  /** A guest was copied, or others are guests now. */
  void changed() {
    noneLeft = false;
  }

  /** Whether there may be one. */
  boolean mayBeThere() {
    return share.remoteCopies() != RemoteCopies.KEEP && !noneLeft;
  }

  /** The inode of a guest in a tier, not a pinned one; 0 if there is none. */
  synchronized long victim(Tier tier) {
    if (!mayBeThere()) {
      return 0;
    }
    // Whoever comes while this looks is found by the next look.
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
