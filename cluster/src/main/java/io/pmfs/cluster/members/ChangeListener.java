package io.pmfs.cluster.members;

import java.util.List;
import java.util.function.Consumer;
import org.infinispan.notifications.Listener;
import org.infinispan.notifications.cachelistener.annotation.CacheEntryCreated;
import org.infinispan.notifications.cachelistener.annotation.CacheEntryModified;
import org.infinispan.notifications.cachelistener.annotation.CacheEntryRemoved;
import org.infinispan.notifications.cachelistener.event.CacheEntryEvent;
import org.infinispan.notifications.cachemanagerlistener.annotation.Merged;
import org.infinispan.notifications.cachemanagerlistener.annotation.ViewChanged;
import org.infinispan.notifications.cachemanagerlistener.event.MergeEvent;
import org.infinispan.notifications.cachemanagerlistener.event.ViewChangedEvent;
import org.infinispan.remoting.transport.Address;

/**
 * Runs an action when the group or an announcement changes. Public because Infinispan calls it by
 * reflection, on its own threads.
 */
@Listener
public final class ChangeListener {
  private final Runnable then;
  private final Consumer<List<List<Address>>> merged;

  /**
   * A listener for one node.
   *
   * @param merged also receives the parts of a merged group
   */
  ChangeListener(Runnable then, Consumer<List<List<Address>>> merged) {
    this.then = then;
    this.merged = merged;
  }

  @ViewChanged
  public void groupChanged(ViewChangedEvent event) {
    then.run();
  }

  /** Parts of the group have merged; Infinispan reports no other event for that. */
  @Merged
  public void groupMerged(MergeEvent event) {
    merged.accept(event.getSubgroupsMerged());
    then.run();
  }

  @CacheEntryCreated
  @CacheEntryModified
  @CacheEntryRemoved
  public void announcementChanged(CacheEntryEvent<String, String> event) {
    if (!event.isPre()) {
      then.run();
    }
  }
}
