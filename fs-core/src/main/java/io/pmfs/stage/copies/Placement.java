package io.pmfs.stage.copies;

import org.jspecify.annotations.Nullable;

/**
 * Where requested copies are placed.
 *
 * @param tier the name of the only tier to use; null for the first with room
 * @param pin whether they are never evicted to make room
 */
public record Placement(@Nullable String tier, boolean pin) {
  /** In the first tier with room, evicted like any other. */
  public static final Placement ANYWHERE = new Placement(null, false);

  public boolean allows(String name) {
    return tier == null || tier.equals(name);
  }
}
