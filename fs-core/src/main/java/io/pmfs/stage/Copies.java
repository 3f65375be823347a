package io.pmfs.stage;

import io.pmfs.compression.Codec;
import io.pmfs.compression.ZstdCodec;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.tier.CopyReader;
import io.pmfs.tier.ReadResult;
import io.pmfs.tier.ReadSink;
import io.pmfs.tier.Tier;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Which tier holds a copy of which file, and reading from there. Knows the copies that the records
 * name, serves none whose checksums were not compared in this session, and drops what does not
 * match.
 *
 * <p>INVARIANT: a tier is named in {@link #where} only after its copy was committed and recorded,
 * or read from the records; a copy is of the version that the inode's checked attributes describe,
 * because whoever sees another version calls {@link #drop} first.
 */
public final class Copies implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Copies.class);

  /** An open waits for so much to be verified: some milliseconds. */
  private static final long VERIFIED_AT_OPEN_BYTES = 8L * Blocks.SIZE;

  private static final int OPEN_COPIES = 512;

  /** More than all readers together need for frames of which they want a part. */
  private static final int FRAME_POOL_BYTES = 32 << 20;

  private static final Duration IDLE = Duration.ofSeconds(30);

  // The states of an inode in `where`. A tier by its index, fastest first.
  private static final byte UNKNOWN = 0;
  private static final byte NOWHERE = 1;
  private static final byte IN_TIER = 2;
  private static final byte VERIFIED_IN_TIER = 42;

  /** Compressed ones are compared at every read, so it does not matter whether they ever were. */
  private static final byte COMPRESSED_IN_TIER = 82;

  static final int MAX_TIERS = VERIFIED_IN_TIER - IN_TIER;

  private final Namespace namespace;
  private final List<Tier> tiers;
  private final List<CopyFormat> formats;
  private final FramePool frames = new FramePool(FRAME_POOL_BYTES);
  private final InodeBytes where = new InodeBytes();
  private final HandleTable<OpenCopy> handles = new HandleTable<>(OPEN_COPIES, IDLE);
  private volatile LongConsumer dropListener = number -> {};
  private final LongAdder verified = new LongAdder();
  private final LongAdder mismatches = new LongAdder();

  /**
   * Serves what the namespace's records say the tiers hold.
   *
   * @param tiers fastest first; closed with this
   */
  public Copies(Namespace namespace, List<Tier> tiers) {
    this(namespace, tiers, tiers.stream().map(tier -> CopyFormat.raw()).toList());
  }

  /**
   * The same, with copies compressed.
   *
   * @param formats how each tier's copies are stored; closed with this
   */
  public Copies(Namespace namespace, List<Tier> tiers, List<CopyFormat> formats) {
    if (tiers.size() != formats.size()) {
      throw new IllegalArgumentException("each tier has one format");
    }
    if (tiers.size() > MAX_TIERS) {
      throw new IllegalArgumentException("there may be " + MAX_TIERS + " tiers at most");
    }
    this.namespace = namespace;
    this.tiers = List.copyOf(tiers);
    this.formats = List.copyOf(formats);
  }

  public List<Tier> tiers() {
    return tiers;
  }

  /** How each tier's copies are stored. */
  public List<CopyFormat> formats() {
    return formats;
  }

  /** Raw copies whose checksums were compared and matched. */
  public long verified() {
    return verified.sum();
  }

  /** Copies that were dropped because their bytes, length or file were not what was recorded. */
  public long mismatches() {
    return mismatches.sum();
  }

  /** Reserves room in a tier for a file's copy; null if there is none. */
  @Nullable BlockWriter create(Inode inode, Tier tier) {
    return BlockWriter.create(inode, tier, format(tier), frames);
  }

  private CopyFormat format(Tier tier) {
    return formats.get(tiers.indexOf(tier));
  }

  /** Counts what a tier's copies hold, if that is not known; while it takes no copies. */
  void countContent(Tier tier) {
    CopyFormat format = format(tier);
    if (format.contentBytes() >= 0) {
      return;
    }
    AtomicLong bytes = new AtomicLong();
    namespace.listCopies(
        Namespace.ROOT,
        (number, copy) -> {
          if (copy.tier().equals(tier.name())) {
            bytes.addAndGet(copy.version().size());
          }
          return true;
        });
    format.contentBytes(bytes.get());
  }

  /**
   * Whether some tier is known to hold a copy; not every known copy can be read when it comes to
   * it.
   */
  boolean has(Inode inode) {
    return locate(inode) >= IN_TIER;
  }

  /**
   * Reads a range, which must lie within the file, from the fastest tier that holds a copy.
   *
   * @return whether all of it was passed to the sink; if not, nothing was
   */
  boolean read(Inode inode, long offset, int size, ReadSink sink) {
    long number = inode.number();
    // Each round that fails drops the copy it tried, or its tier failed: twice the tiers is more
    // than enough.
    for (int round = 0; round < 2 * tiers.size(); round++) {
      byte state = locate(inode);
      if (state < IN_TIER) {
        return false;
      }
      Tier tier = tiers.get(tierIndex(state));
      try (var lease = handles.acquire(number, () -> open(inode, tier, isVerified(state)))) {
        if (lease == null) {
          missing(inode, tier);
          continue;
        }
        lease.handle().read(offset, size, sink);
        return true;
      } catch (MismatchException e) {
        dropBad(inode, tier, String.valueOf(e.getMessage()));
      } catch (EOFException e) {
        dropBad(inode, tier, "it is shorter than it was");
      } catch (IOException e) {
        // The record stays: what is on the disk may serve the next session.
        tier.failed(e);
        handles.invalidate(number);
      }
    }
    return false;
  }

  /**
   * The file of a copy that was verified whole in this session, for a kernel that reads it without
   * us; null if there is none. A small copy is verified here and now.
   */
  @Nullable Path file(Inode inode) {
    byte state = locate(inode);
    if (state < IN_TIER || isCompressed(state)) {
      return null;
    }
    if (!isVerified(state)) {
      if (inode.attributes().size() > VERIFIED_AT_OPEN_BYTES || !verify(inode)) {
        return null;
      }
    }
    state = locate(inode);
    return isVerified(state) ? tiers.get(tierIndex(state)).file(inode.number()) : null;
  }

  /** Whether there is a copy that the kernel cannot read without us. */
  public boolean isCompressed(Inode inode) {
    return isCompressed(locate(inode));
  }

  /** Verifies a whole copy, block by block; says whether there is one and it is good. */
  boolean verify(Inode inode) {
    long size = inode.attributes().size();
    for (long offset = 0; offset < size; offset += Blocks.SIZE) {
      int count = (int) Math.min(Blocks.SIZE, size - offset);
      if (!read(inode, offset, count, NOWHERE_TO_PUT_IT)) {
        return false;
      }
    }
    return true;
  }

  private static final ReadSink NOWHERE_TO_PUT_IT =
      new ReadSink() {
        @Override
        public ByteBuffer buffer(int size) {
          return ByteBuffer.allocateDirect(size);
        }

        @Override
        public void accept(ReadResult piece) {}
      };

  /** Has the listener told of every inode whose copy goes away, by any thread. */
  public void onDrop(LongConsumer listener) {
    dropListener = listener;
  }

  /** Records a committed copy, whose checksums were computed from what was written. */
  void commit(Inode inode, BlockWriter writer, CopyRecord copy) throws IOException {
    writer.commit();
    uncount(inode.number(), writer.tier());
    namespace.putCopy(inode.number(), copy);
    format(writer.tier()).count(copy.version().size());
    handles.invalidate(inode.number());
    int index = tiers.indexOf(writer.tier());
    int state = copy.codec() == CopyFormat.RAW ? VERIFIED_IN_TIER : COMPRESSED_IN_TIER;
    where.set(inode.number(), (byte) (state + index));
  }

  /** The record that a tier's copy has, if it has one, goes away or is replaced. */
  private void uncount(long number, Tier tier) {
    for (CopyRecord copy : namespace.copies(number)) {
      if (copy.tier().equals(tier.name())) {
        format(tier).count(-copy.version().size());
      }
    }
  }

  /** Removes all copies of an inode and their records: its content changed, or it is gone. */
  public void drop(long number) {
    for (CopyRecord copy : namespace.copies(number)) {
      for (Tier tier : tiers) {
        if (tier.name().equals(copy.tier())) {
          tier.remove(number);
          format(tier).count(-copy.version().size());
        }
      }
      namespace.removeCopy(number, copy.tier());
    }
    where.set(number, NOWHERE);
    handles.invalidate(number);
    dropListener.accept(number);
  }

  /** Removes the copy in one tier, to make room. */
  void evict(long number, Tier tier) {
    uncount(number, tier);
    namespace.removeCopy(number, tier.name());
    where.set(number, UNKNOWN);
    tier.remove(number);
    handles.invalidate(number);
    dropListener.accept(number);
  }

  /**
   * A copy that was to be there is not: its tier failed, somebody evicted it meanwhile, or its file
   * was taken away.
   */
  private void missing(Inode inode, Tier tier) {
    where.set(inode.number(), UNKNOWN);
    // The record goes before the file and comes after it: only if it was there all the time is the
    // file what is missing.
    if (!tier.hasFailed()
        && recordIn(inode, tier) != null
        && !isThere(inode, tier)
        && recordIn(inode, tier) != null) {
      dropBad(inode, tier, "its file is not there");
    }
  }

  private static boolean isThere(Inode inode, Tier tier) {
    try (CopyReader reader = tier.open(inode.number())) {
      return reader != null;
    } catch (IOException e) {
      // The tier has failed, and says so.
      return true;
    }
  }

  private void dropBad(Inode inode, Tier tier, String why) {
    mismatches.increment();
    log.warn(
        "the copy of {} in tier {} is dropped: {}; it is read from the source again",
        namespace.path(inode.number()),
        tier.name(),
        why);
    evict(inode.number(), tier);
  }

  /** The state of an inode, from the records if it is not in memory yet. */
  private byte locate(Inode inode) {
    long number = inode.number();
    byte state = where.get(number);
    if (state != UNKNOWN && (state < IN_TIER || !tiers.get(tierIndex(state)).hasFailed())) {
      return state;
    }
    int best = tiers.size();
    int kind = IN_TIER;
    for (CopyRecord copy : namespace.copies(number)) {
      int index = tierIndex(copy.tier());
      if (index < best
          && !tiers.get(index).hasFailed()
          && copy.version().equals(inode.attributes().version())) {
        best = index;
        kind = copy.codec() == CopyFormat.RAW ? IN_TIER : COMPRESSED_IN_TIER;
      }
    }
    byte found = best == tiers.size() ? NOWHERE : (byte) (kind + best);
    where.compareAndSet(number, state, found);
    return found;
  }

  private int tierIndex(String name) {
    for (int i = 0; i < tiers.size(); i++) {
      if (tiers.get(i).name().equals(name)) {
        return i;
      }
    }
    return tiers.size();
  }

  private static int tierIndex(byte state) {
    if (isCompressed(state)) {
      return state - COMPRESSED_IN_TIER;
    }
    return isVerified(state) ? state - VERIFIED_IN_TIER : state - IN_TIER;
  }

  private static boolean isVerified(byte state) {
    return state >= VERIFIED_IN_TIER && !isCompressed(state);
  }

  private static boolean isCompressed(byte state) {
    return state >= COMPRESSED_IN_TIER;
  }

  private @Nullable OpenCopy open(Inode inode, Tier tier, boolean trusted) throws IOException {
    CopyRecord record = trusted ? null : recordIn(inode, tier);
    if (record == null && !trusted) {
      // Evicted just now.
      return null;
    }
    CopyReader reader = tier.open(inode.number());
    if (reader == null) {
      return null;
    }
    boolean opened = false;
    try {
      if (trusted && !isVerified(where.get(inode.number()))) {
        // Evicted just now; what was opened may be a later copy of another kind.
        return null;
      }
      if (record != null && !isReadable(record, inode)) {
        throw new MismatchException("its record is not one this version can read");
      }
      OpenCopy copy =
          record == null || record.codec() == CopyFormat.RAW
              ? openRaw(inode, tier, reader, record)
              : openCompressed(tier, reader, record);
      opened = true;
      return copy;
    } finally {
      if (!opened) {
        reader.close();
      }
    }
  }

  private OpenCopy openRaw(
      Inode inode, Tier tier, CopyReader reader, @Nullable CopyRecord toCompareWith)
      throws MismatchException {
    if (reader.size() != inode.attributes().size()) {
      throw new MismatchException(
          "it has " + reader.size() + " bytes instead of " + inode.attributes().size());
    }
    return new RawCopy(reader, toCompareWith, () -> verified(inode, tier));
  }

  private OpenCopy openCompressed(Tier tier, CopyReader reader, CopyRecord record)
      throws IOException {
    Codec codec = format(tier).byNumber(record.codec());
    if (codec == null) {
      throw new MismatchException("the dictionary that it needs is missing or damaged");
    }
    return new CompressedCopy(reader, record, codec, frames);
  }

  private void verified(Inode inode, Tier tier) {
    verified.increment();
    int index = tiers.indexOf(tier);
    where.compareAndSet(
        inode.number(), (byte) (IN_TIER + index), (byte) (VERIFIED_IN_TIER + index));
  }

  private @Nullable CopyRecord recordIn(Inode inode, Tier tier) {
    for (CopyRecord copy : namespace.copies(inode.number())) {
      if (copy.tier().equals(tier.name())) {
        return copy;
      }
    }
    return null;
  }

  private static boolean isReadable(CopyRecord copy, Inode inode) {
    int blockSize = copy.blockSize();
    boolean knownCodec =
        switch (copy.codec()) {
          case CopyFormat.RAW -> blockSize == Blocks.SIZE;
          case ZstdCodec.NUMBER, ZstdCodec.WITH_DICTIONARY ->
              blockSize > 0 && Blocks.SIZE % blockSize == 0;
          default -> false;
        };
    return knownCodec
        && copy.version().equals(inode.attributes().version())
        && copy.checksums().count() == Frames.count(copy.version().size(), blockSize);
  }

  /** Closes what is open, then the tiers. */
  @Override
  public void close() {
    handles.close();
    formats.forEach(CopyFormat::close);
    tiers.forEach(Tier::close);
  }
}
