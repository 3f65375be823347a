package io.pmfs.cache;

import io.pmfs.cache.CacheMessage.Refusal;
import org.jspecify.annotations.Nullable;

/**
 * The result of asking for a copy.
 *
 * @param copy the copy, held for the user, in any state; null if there is none
 * @param isNew whether the caller must make the copy
 * @param why the reason for a refusal; null if the copy can be made
 */
record HeldCopy(@Nullable SharedCopy copy, boolean isNew, @Nullable Refusal why) {
  static final HeldCopy NONE = new HeldCopy(null, false, null);
  static final HeldCopy NO_ROOM = new HeldCopy(null, false, Refusal.NO_ROOM);
  static final HeldCopy LIMIT = new HeldCopy(null, false, Refusal.LIMIT);
}
