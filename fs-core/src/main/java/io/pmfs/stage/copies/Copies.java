package io.pmfs.stage.copies;

import io.pmfs.memory.DirectMemory;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Checksums;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.OpenFileLimit;
import io.pmfs.stage.formats.BlockWriter;
import io.pmfs.stage.formats.Blocks;
import io.pmfs.stage.formats.Bundling;
import io.pmfs.stage.formats.CopyFormat;
import io.pmfs.stage.formats.MismatchException;
import io.pmfs.stage.formats.NoSink;
import io.pmfs.tier.CopyReader;
import io.pmfs.tier.OpenCopy;
import io.pmfs.tier.Tier;
import java.io.EOFException;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.function.IntPredicate;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The copies in the tiers. Serves only copies whose checksums were verified in this session, and
 * drops copies that do not match. Thread-safe.
 */
public final class Copies implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Copies.class);

  /** An open verifies at most this much, which takes some milliseconds. */
  private static final long VERIFIED_AT_OPEN_BYTES = 8L * Blocks.SIZE;

  private static final int OPEN_COPIES = 512;

  private static final Duration IDLE = Duration.ofSeconds(30);

  private final Namespace namespace;
  private final List<Tier> tiers;
  private final List<CopyFormat> formats;
  private final DirectMemory memory;
  private final HandleTable<OpenInTier> handles =
      new HandleTable<>(Math.min(OPEN_COPIES, OpenFileLimit.ofProcess()), IDLE);
  private final CopyIndex index;
  private final LongAdder verified = new LongAdder();
  private final Map<Tier, LongAdder> mismatches = new ConcurrentHashMap<>();

  /** Returned instead of a tier's index. */
  public static final int NO_TIER = -1;

  /** An open copy, and the index of the tier that holds it. */
  private record OpenInTier(int place, OpenCopy copy) implements AutoCloseable {
    @Override
    public void close() {
      copy.close();
    }
  }

  /**
   * Serves the copies that the namespace's records list.
   *
   * @param tiers fastest first; closed with this
   * @param formats how each tier's copies are stored; closed with this
   * @param memory used for reading, copying and comparing
   */
  public Copies(
      Namespace namespace, List<Tier> tiers, List<CopyFormat> formats, DirectMemory memory) {
    if (tiers.size() != formats.size()) {
      throw new IllegalArgumentException("each tier needs exactly one format");
    }
    if (tiers.size() > Whereabouts.MAX_TIERS) {
      throw new IllegalArgumentException(
          "at most " + Whereabouts.MAX_TIERS + " tiers are possible");
    }
    this.namespace = namespace;
    this.tiers = List.copyOf(tiers);
    this.formats = List.copyOf(formats);
    this.memory = memory;
    this.index =
        new CopyIndex(namespace, this.tiers, this.formats, memory.store(), handles::invalidate);
  }

  public DirectMemory memory() {
    return memory;
  }

  public List<Tier> tiers() {
    return tiers;
  }

  public List<CopyFormat> formats() {
    return formats;
  }

  /** The number of raw copies that were verified. */
  public long verified() {
    return verified.sum();
  }

  /** The number of copies dropped because their bytes, length or file did not match the record. */
  public long mismatches() {
    return tiers.stream().mapToLong(this::mismatches).sum();
  }

  /** The number of such copies dropped from one tier. */
  public long mismatches(Tier tier) {
    LongAdder count = mismatches.get(tier);
    return count == null ? 0 : count.sum();
  }

  /**
   * Reserves room in a tier for a file's copy; null if there is none.
   *
   * @param alone whether the copy must not be in a bundle
   */
  @Nullable
  public BlockWriter create(Inode inode, Tier tier, boolean alone) {
    CopyFormat format = format(tier);
    return BlockWriter.create(
        inode, tier, format, alone ? Bundling.NONE : format.bundling(), memory);
  }

  public CopyIndex index() {
    return index;
  }

  CopyFormat format(Tier tier) {
    return index.format(tier);
  }

  /** Whether new raw copies of that size share bundles in every tier. */
  public boolean isBundled(long size) {
    return formats.stream().allMatch(format -> format.bundling().takesRaw(size));
  }

  /**
   * The checksums of a file's {@link Blocks}, from the record of the copy that reads use; null
   * without a copy or checksums.
   */
  public @Nullable Checksums checksums(Inode inode) {
    byte state = index.locate(inode);
    CopyRecord copy =
        Whereabouts.isInTier(state)
            ? namespace.copy(inode.number(), tiers.get(Whereabouts.tierIndex(state)).name())
            : null;
    return copy != null
            && copy.blockSize() == Blocks.SIZE
            && copy.version().equals(inode.attributes().version())
            && copy.checksums().count() == Blocks.count(copy.version())
        ? copy.checksums()
        : null;
  }

  /** Whether some tier is known to hold a copy. Reading a known copy may still fail. */
  public boolean has(Inode inode) {
    return Whereabouts.isInTier(index.locate(inode));
  }

  /**
   * Passes a range, which must lie within the file, to the sink, from the fastest tier that holds a
   * copy.
   *
   * @return the index of the tier if the whole range was passed; {@link #NO_TIER} if nothing was
   */
  public int copyTo(Inode inode, long offset, int size, ReadSink sink) {
    long number = inode.number();
    // A round fails only if it drops a copy or if the tier fails, so twice the number of tiers is
    // enough.
    for (int round = 0; round < 2 * tiers.size(); round++) {
      byte state = index.locate(inode);
      if (!Whereabouts.isInTier(state)) {
        return NO_TIER;
      }
      int fastest = Whereabouts.tierIndex(state);
      Tier tier = tiers.get(fastest);
      var present = handles.present(number);
      try (var lease =
          present != null
              ? present
              : handles.acquire(
                  number, () -> openIn(fastest, inode, Whereabouts.isVerified(state)))) {
        if (lease == null) {
          missing(inode, tier);
          continue;
        }
        int place = lease.handle().place();
        tier = tiers.get(place);
        if (tier.hasFailed()) {
          handles.invalidate(number);
          continue;
        }
        lease.handle().copy().copyTo(offset, size, sink);
        return place;
      } catch (MismatchException e) {
        dropIfBad(inode, tier, offset, size, String.valueOf(e.getMessage()));
      } catch (EOFException e) {
        dropIfBad(inode, tier, offset, size, "it was truncated");
      } catch (IOException e) {
        // The record stays: the copy on the disk may serve the next session.
        tier.failed(e);
        handles.invalidate(number);
      }
    }
    return NO_TIER;
  }

  /**
   * The file of a copy that was completely verified in this session, for a kernel that reads it
   * without pmfs; null if there is none. Verifies a small copy first.
   */
  @Nullable
  public Path file(Inode inode) {
    byte state = index.locate(inode);
    if (!Whereabouts.isRawFile(state)) {
      return null;
    }
    if (!Whereabouts.isVerified(state)) {
      if (inode.attributes().size() > VERIFIED_AT_OPEN_BYTES || !verify(inode)) {
        return null;
      }
    }
    state = index.locate(inode);
    return Whereabouts.isVerified(state) && Whereabouts.isRawFile(state)
        ? tiers.get(Whereabouts.tierIndex(state)).file(inode.number())
        : null;
  }

  /** Whether there is a copy that only pmfs can read. */
  public boolean isReadByUs(Inode inode) {
    byte state = index.locate(inode);
    return Whereabouts.isInTier(state) && !Whereabouts.isRawFile(state);
  }

  /** Verifies a whole copy, block by block; false if there is none or it is bad. */
  public boolean verify(Inode inode) {
    long size = inode.attributes().size();
    try (NoSink sink = new NoSink(memory.store())) {
      for (long offset = 0; offset < size; offset += NoSink.MAX_BYTES) {
        int count = (int) Math.min(NoSink.MAX_BYTES, size - offset);
        if (copyTo(inode, offset, count, sink) == NO_TIER) {
          return false;
        }
      }
    }
    return true;
  }

  /**
   * The records of a file's copies in the configured tiers. Records of other tiers are kept for a
   * session that configures the tier again, and are ignored here.
   */
  public List<CopyRecord> records(long number) {
    return namespace.copies(number).stream()
        .filter(copy -> index.tierIndex(copy.tier()) < tiers.size())
        .toList();
  }

  /**
   * Compares the copies of a file with their checksums until one is good, and drops the bad ones.
   * Returns what is wrong with the last, or null if one is good.
   *
   * @param goesOn called with the number of bytes compared each time; returns false to stop
   */
  public @Nullable String compareAny(Inode inode, IntPredicate goesOn) {
    String problem = "there is no copy";
    for (CopyRecord copy : records(inode.number())) {
      if (copy.version().equals(inode.attributes().version()) && has(inode)) {
        try {
          String found = compare(inode, copy, goesOn);
          if (found == null) {
            return null;
          }
          problem = "in tier " + copy.tier() + ": " + found;
          reject(inode, copy, found, true);
        } catch (IOException e) {
          problem = "in tier " + copy.tier() + ": the tier failed: " + e.getMessage();
        }
      }
    }
    return problem;
  }

  /** Rewrites missing dictionaries that copies need in the next session. */
  public void keepDictionaries() {
    formats.forEach(CopyFormat::keepDictionary);
  }

  /**
   * Compares a whole copy of {@link #records} with its checksums, even if it was verified before.
   * Returns what is wrong with it, or null if nothing is or the copy was removed meanwhile.
   *
   * @param goesOn called with the number of bytes compared each time; returns false to stop
   * @throws IOException if the tier failed
   */
  public @Nullable String compare(Inode inode, CopyRecord copy, IntPredicate goesOn)
      throws IOException {
    Tier tier = tiers.get(index.tierIndex(copy.tier()));
    requireWorking(tier);
    try (NoSink sink = new NoSink(memory.store());
        OpenCopy fresh = open(inode, tier, false)) {
      if (fresh == null) {
        requireWorking(tier);
        return namespace.copies(inode.number()).contains(copy) ? "its file is missing" : null;
      }
      long size = copy.version().size();
      boolean goOn = true;
      for (long offset = 0; offset < size && goOn; offset += NoSink.MAX_BYTES) {
        int count = (int) Math.min(NoSink.MAX_BYTES, size - offset);
        fresh.copyTo(offset, count, sink);
        goOn = goesOn.test(count);
      }
      return null;
    } catch (MismatchException e) {
      return String.valueOf(e.getMessage());
    } catch (EOFException e) {
      return "it was truncated";
    } catch (IOException e) {
      tier.failed(e);
      handles.invalidate(inode.number());
      throw e;
    }
  }

  private static void requireWorking(Tier tier) throws IOException {
    if (tier.hasFailed()) {
      throw new IOException(String.valueOf(tier.status().reason()));
    }
  }

  /**
   * Stops serving a bad copy in this session.
   *
   * @param drop whether to drop it; otherwise it stays until the file is copied again
   */
  public void reject(Inode inode, CopyRecord copy, String why, boolean drop) {
    int place = index.tierIndex(copy.tier());
    if (drop && place < tiers.size()) {
      dropBad(inode, tiers.get(place), why);
      return;
    }
    index.ignore(inode.number());
  }

  /** Calls the listener for every inode whose copy is removed, on any thread. */
  public void onDrop(LongConsumer listener) {
    index.onDrop(listener);
  }

  /** Whether the file had a copy of another version. */
  public boolean isOutdated(long number) {
    return index.known(number) == Whereabouts.OUTDATED;
  }

  /**
   * Whether there is a copy from which the whole file can be read, as far as known without reading
   * it. Compares the known copies with the tiers, and forgets those that are missing.
   */
  public boolean isThere(Inode inode) {
    return isThere(inode, Placement.ANYWHERE);
  }

  /** Whether there is such a copy that satisfies the placement. */
  public boolean isThere(Inode inode, Placement placement) {
    if (index.has(inode, placement)) {
      index.confirm(inode);
    }
    return index.has(inode, placement);
  }

  /**
   * Compares a tier with the records in both directions, while both are in use; false if it did not
   * get to its end, as while the state fails.
   */
  public boolean compareWithRecords(Tier tier, BooleanSupplier stopping) {
    return new TierComparison(namespace, index, tier, format(tier)).run(stopping);
  }

  /**
   * Removes all copies of an inode and their records, because its content changed or it no longer
   * exists.
   *
   * @return whether there were any
   */
  public boolean drop(long number) {
    return index.drop(number);
  }

  /** Like {@link #drop}, because the copies are no longer wanted. */
  public boolean evict(long number) {
    return index.evict(number);
  }

  /** Like {@link #evict}, except for pinned copies. */
  public boolean evictUnpinned(long number) {
    return index.evictUnpinned(number);
  }

  /** Handles a known copy that was not found: its tier failed, or it was evicted or removed. */
  private void missing(Inode inode, Tier tier) {
    index.forget(inode.number());
    CopyRecord record = namespace.copy(inode.number(), tier.name());
    if (record != null && !tier.hasFailed() && index.lose(inode.number(), record)) {
      countBad(inode, tier, "its file is missing");
    }
  }

  /**
   * Drops a copy with a bad range. Checks the current copy again: another reader may have dropped
   * the bad one, and the file may have been copied since.
   */
  private void dropIfBad(Inode inode, Tier tier, long offset, int size, String why) {
    if (index.evictIf(inode.number(), tier, () -> isBad(inode, tier, offset, size))) {
      countBad(inode, tier, why);
    }
  }

  private boolean isBad(Inode inode, Tier tier, long offset, int size) {
    try (NoSink sink = new NoSink(memory.store());
        OpenCopy fresh = open(inode, tier, false)) {
      for (int at = 0; fresh != null && at < size; at += NoSink.MAX_BYTES) {
        fresh.copyTo(offset + at, Math.min(NoSink.MAX_BYTES, size - at), sink);
      }
      return fresh == null && !tier.hasFailed();
    } catch (MismatchException | EOFException e) {
      return true;
    } catch (IOException e) {
      // The copy may serve the next session.
      tier.failed(e);
      return false;
    }
  }

  private void dropBad(Inode inode, Tier tier, String why) {
    // Another thread may have dropped it already.
    if (index.evict(inode.number(), tier)) {
      countBad(inode, tier, why);
    }
  }

  private void countBad(Inode inode, Tier tier, String why) {
    index.bad(inode.number());
    mismatches.computeIfAbsent(tier, key -> new LongAdder()).increment();
    log.warn(
        "dropped the copy of {} in tier {}: {}; reading the file from the source",
        namespace.path(inode.number()),
        tier.name(),
        why);
  }

  private @Nullable OpenInTier openIn(int place, Inode inode, boolean trusted) throws IOException {
    OpenCopy copy = open(inode, tiers.get(place), trusted);
    return copy == null ? null : new OpenInTier(place, copy);
  }

  private @Nullable OpenCopy open(Inode inode, Tier tier, boolean trusted) throws IOException {
    // A verified raw file needs no record.
    boolean known = trusted && Whereabouts.isRawFile(index.known(inode.number()));
    CopyRecord record = known ? null : namespace.copy(inode.number(), tier.name());
    if (record == null && !known) {
      // Evicted meanwhile.
      return null;
    }
    CopyReader reader = tier.open(inode.number(), record == null ? null : record.extent());
    if (reader == null) {
      return null;
    }
    boolean opened = false;
    try {
      if (trusted && !Whereabouts.isVerified(index.known(inode.number()))) {
        // Evicted meanwhile; the opened file may be a later copy of another kind.
        return null;
      }
      CopyRecord compared = trusted ? null : record;
      OpenCopy copy =
          format(tier).open(inode, reader, compared, memory, () -> verified(inode, tier));
      opened = true;
      return copy;
    } finally {
      if (!opened) {
        reader.close();
      }
    }
  }

  private void verified(Inode inode, Tier tier) {
    verified.increment();
    index.verified(inode, tier);
  }

  /** Closes open copies, then the tiers. */
  @Override
  public void close() {
    handles.close();
    formats.forEach(CopyFormat::close);
    tiers.forEach(Tier::close);
  }
}
