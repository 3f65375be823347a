package io.pmfs.cluster.members;

import org.infinispan.notifications.Listener;
import org.infinispan.notifications.cachelistener.annotation.CacheEntryCreated;
import org.infinispan.notifications.cachelistener.annotation.CacheEntryModified;
import org.infinispan.notifications.cachelistener.annotation.CacheEntryRemoved;
import org.infinispan.notifications.cachelistener.event.CacheEntryEvent;
import org.infinispan.notifications.cachemanagerlistener.annotation.Merged;
import org.infinispan.notifications.cachemanagerlistener.annotation.ViewChanged;
import org.infinispan.notifications.cachemanagerlistener.event.MergeEvent;
import org.infinispan.notifications.cachemanagerlistener.event.ViewChangedEvent;

/**
 * Runs an action when the group or an announcement has changed. Public because Infinispan calls it
 * by reflection, on its own threads.
 */
@Listener
public final class ChangeListener {
  private final Runnable then;

  ChangeListener(Runnable then) {
    this.then = then;
  }

  /** The members of the group have changed. */
  @ViewChanged
  public void groupChanged(ViewChangedEvent event) {
    then.run();
  }

  /** Parts of the group have merged; Infinispan reports no other event for that. */
  @Merged
  public void groupMerged(MergeEvent event) {
    then.run();
  }

  /** A member's announcement was made or removed. */
  @CacheEntryCreated
  @CacheEntryModified
  @CacheEntryRemoved
  public void announcementChanged(CacheEntryEvent<String, String> event) {
    if (!event.isPre()) {
      then.run();
    }
  }
}
