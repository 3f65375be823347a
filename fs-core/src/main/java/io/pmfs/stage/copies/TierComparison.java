package io.pmfs.stage.copies;

import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Namespace;
import io.pmfs.stage.formats.CopyFormat;
import io.pmfs.table.StateException;
import io.pmfs.tier.Tier;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Compares a tier with the records once, in both directions, while the tier serves: removes files
 * without a record and records without a copy, and counts the rest. It holds a few hundred records
 * at a time, regardless of the size of the dataset.
 *
 * <p>Records are processed in the order of their numbers. Copies change meanwhile, and {@link
 * #changed} receives each change: one below the counted number corrects the count; one above is
 * found when its number is processed. Numbers that change while a batch is processed are processed
 * again while nothing can change.
 */
public final class TierComparison {
  private static final Logger log = LoggerFactory.getLogger(TierComparison.class);

  private static final int BATCH = 256;

  private final Namespace namespace;
  private final CopyIndex index;
  private final Tier tier;
  private final CopyFormat format;
  private final Tier.Census census;

  // GUARDED_BY(this)
  private long counted; // all numbers below this
  private long contentBytes;
  private final Set<Long> changedSince = new HashSet<>(); // not counted yet

  private boolean taken; // GUARDED_BY(this)

  private long unrecorded;
  private long lost;

  TierComparison(Namespace namespace, CopyIndex index, Tier tier, CopyFormat format) {
    this.namespace = namespace;
    this.index = index;
    this.tier = tier;
    this.format = format;
    this.census = tier.census();
  }

  /** A record of a copy. */
  private record Found(long number, CopyRecord copy) {}

  /**
   * Compares everything, unless it is stopped, or the tier or the state fails. Returns whether the
   * tier has the count; if not, another comparison may succeed.
   */
  boolean run(BooleanSupplier stopping) {
    if (namespace.failure() != null) {
      return false;
    }
    int losses = namespace.losses();
    index.watch(this);
    try {
      census.forEachFile(
          number -> {
            if (isForgetful(losses)) {
              return false;
            }
            discardUnrecorded(number);
            return !stopping.getAsBoolean();
          });
      long next = Namespace.ROOT;
      while (next >= 0) {
        if (stopping.getAsBoolean() || tier.hasFailed() || isForgetful(losses)) {
          return false;
        }
        next = compare(next);
      }
      if (isForgetful(losses)) {
        return false;
      }
      index.whileNothingChanges(this::take);
    } catch (IOException | StateException e) {
      // The tier, or the state, logged this and shows it in its status.
      log.debug("stopped comparing tier {}: {}", tier.name(), e.getMessage());
    } finally {
      index.watch(null);
    }
    if (lost > 0 || unrecorded > 0) {
      log.warn(
          "tier {}: forgot {} recorded copies that were missing, removed {} files without a record",
          tier.name(),
          lost,
          unrecorded);
    }
    return isTaken();
  }

  private synchronized boolean isTaken() {
    return taken;
  }

  /** Whether records may be lost: a missing record then proves nothing about its copy. */
  private boolean isForgetful(int lossesBefore) {
    return namespace.failure() != null || namespace.losses() != lossesBefore;
  }

  private void discardUnrecorded(long number) {
    try {
      if (index.discardUnrecorded(number, tier, census)) {
        unrecorded++;
      }
    } catch (IOException e) {
      log.debug("tier {}: {}", tier.name(), e.getMessage());
    }
  }

  /** Processes a batch of records from a number on; returns where to continue, or -1 at the end. */
  private long compare(long from) {
    List<Found> batch = new ArrayList<>();
    long next = list(from, batch);
    List<Found> there = new ArrayList<>();
    for (Found record : batch) {
      if (!index.isThere(record.number, record.copy) && index.lose(record.number, record.copy)) {
        lost++;
      } else {
        there.add(record);
      }
    }
    index.whileNothingChanges(() -> count(there, next));
    return next;
  }

  private long list(long from, List<Found> batch) {
    long[] next = {-1};
    int[] looked = {0};
    long[] last = {-1};
    namespace.listCopies(
        from,
        (number, copy) -> {
          // Keep the records of one number together: the next batch begins with another number.
          if (looked[0] >= BATCH && number != last[0]) {
            next[0] = number;
            return false;
          }
          looked[0]++;
          last[0] = number;
          if (copy.tier().equals(tier.name())) {
            batch.add(new Found(number, copy));
          }
          return true;
        });
    return next[0];
  }

  /**
   * Adds a batch to the count; a copy that changed since the batch was listed counts as it is now.
   */
  private synchronized void count(List<Found> there, long next) {
    for (Found record : there) {
      if (!changedSince.contains(record.number)) {
        add(record.copy);
      }
    }
    for (long number : changedSince) {
      CopyRecord now = next < 0 || number < next ? namespace.copy(number, tier.name()) : null;
      if (now != null) {
        add(now);
      }
    }
    changedSince.clear();
    counted = next < 0 ? Long.MAX_VALUE : next;
  }

  private void add(CopyRecord copy) { // GUARDED_BY(this)
    census.add(copy.extent(), copy.storedSize());
    contentBytes += copy.version().size();
  }

  /** A file's copy in a tier was replaced; called while none of its other copies changes. */
  synchronized void changed(
      long number, Tier where, @Nullable CopyRecord before, @Nullable CopyRecord after) {
    if (where != tier) {
      return;
    }
    if (number >= counted) {
      changedSince.add(number);
      return;
    }
    if (before != null) {
      census.subtract(before.extent(), before.storedSize());
      contentBytes -= before.version().size();
    }
    if (after != null) {
      add(after);
    }
  }

  private synchronized void take() {
    try {
      census.take();
      format.counted(contentBytes);
      taken = true;
    } catch (IOException e) {
      log.debug("stopped comparing tier {}: {}", tier.name(), e.getMessage());
    }
  }
}
