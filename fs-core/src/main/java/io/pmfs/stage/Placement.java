package io.pmfs.stage;

import org.jspecify.annotations.Nullable;

/**
 * Where copies that are asked for are to be.
 *
 * @param tier the name of the only tier to use; null for the first with room
 * @param pin whether they are never to be evicted to make room
 */
public record Placement(@Nullable String tier, boolean pin) {
  /** In the first tier with room, to be evicted as any other. */
  public static final Placement ANYWHERE = new Placement(null, false);

  /** Whether that tier may be used. */
  boolean allows(String name) {
    return tier == null || tier.equals(name);
  }
}
