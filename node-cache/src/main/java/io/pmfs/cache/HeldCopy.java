package io.pmfs.cache;

import io.pmfs.cache.CacheMessage.Refusal;
import org.jspecify.annotations.Nullable;

/**
 * What a connection gets.
 *
 * @param copy held for its user, of any state; null if there is none
 * @param isNew whether it is empty, and is to be made now
 * @param why there is none; null if it can be made
 */
record HeldCopy(@Nullable SharedCopy copy, boolean isNew, @Nullable Refusal why) {
  static final HeldCopy NONE = new HeldCopy(null, false, null);
  static final HeldCopy NO_ROOM = new HeldCopy(null, false, Refusal.NO_ROOM);
  static final HeldCopy LIMIT = new HeldCopy(null, false, Refusal.LIMIT);
}
