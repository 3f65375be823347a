package io.pmfs.stage.formats;

import io.pmfs.compression.Dictionary;
import io.pmfs.compression.SeekTable;
import io.pmfs.compression.ZstdCodec;
import io.pmfs.memory.BufferPool;
import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.tier.CopyReader;
import io.pmfs.tier.OpenCopy;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How the copies of one tier are stored, and how much content they hold. Existing copies of any
 * format can be read, regardless of the format of new ones. Thread-safe.
 */
public final class CopyFormat implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(CopyFormat.class);

  /** The codec number of raw copies. */
  public static final int RAW = 0;

  /** Larger files would have more frames than a table allows. */
  private static final long LARGEST_BYTES = (long) SeekTable.MAX_FRAMES * Frames.SIZE;

  private static final long UNKNOWN = Long.MIN_VALUE;

  /** How many tiers with the same dictionary are remembered. */
  private static final int MOST_SAME = 64;

  private final Compression compression;
  private final Bundling bundling;
  private final @Nullable Path directory;
  private final Executor trainer;
  private final ZstdCodec plain;
  private final @Nullable DictionaryTraining training;
  private volatile @Nullable Dictionary dictionary;
  private volatile @Nullable ZstdCodec withDictionary;

  /** Directories of other tiers that have the same dictionary. */
  private final Set<Path> same = ConcurrentHashMap.newKeySet();

  /** False while copies of earlier sessions may need a dictionary that is lost. */
  private volatile boolean isCompared = true;

  private final AtomicLong contentBytes;

  /**
   * Reads the tier's dictionary, if there is one.
   *
   * @param bundling which copies share bundles
   * @param directory of the dictionary file; null for copies without one
   * @param trainer runs the training, which takes seconds
   * @param contentBytes bytes of content in the existing copies; null if unknown
   */
  public CopyFormat(
      Compression compression,
      Bundling bundling,
      @Nullable Path directory,
      Executor trainer,
      @Nullable Long contentBytes) {
    int level = Math.max(1, compression.level());
    Dictionary loaded = directory == null ? null : DictionaryFile.load(directory);
    this.compression = compression;
    this.bundling = bundling;
    this.directory = directory;
    this.trainer = trainer;
    this.plain = new ZstdCodec(level);
    this.dictionary = loaded;
    this.withDictionary = loaded == null ? null : new ZstdCodec(level, loaded);
    this.training =
        directory == null || loaded != null || compression.mode() == Compression.Mode.NONE
            ? null
            : new DictionaryTraining(level, bundling.unitBytes(), DictionaryTraining.SAMPLE_BYTES);
    this.contentBytes = new AtomicLong(contentBytes == null ? UNKNOWN : contentBytes);
  }

  public Compression compression() {
    return compression;
  }

  public Bundling bundling() {
    return bundling;
  }

  /** The codec of a compressed copy; null if the number is unknown or its dictionary is missing. */
  private @Nullable ZstdCodec byNumber(int number) {
    return switch (number) {
      case ZstdCodec.NUMBER -> plain;
      case ZstdCodec.WITH_DICTIONARY -> withDictionary;
      default -> null;
    };
  }

  /** The largest size that a copy of a file may have. */
  public long mostStored(long size) {
    if (compression.mode() == Compression.Mode.NONE || size > LARGEST_BYTES) {
      return size;
    }
    int frames = Frames.count(size, Frames.SIZE);
    return size + frames * (long) Frames.OVERHEAD_BYTES + SeekTable.encodedSize(frames);
  }

  /**
   * Chooses the codec for a file from its first available block; null for raw.
   *
   * @param content the file's block with the index {@code block}
   * @param scratch lends memory for a trial
   */
  @Nullable ZstdCodec choose(int block, ByteBuffer content, long size, BufferPool scratch) {
    if (compression.mode() == Compression.Mode.NONE || size > LARGEST_BYTES) {
      return null;
    }
    ZstdCodec codec = size <= DictionaryTraining.LARGEST_BYTES ? forSmall(content) : plain;
    return compression.mode() == Compression.Mode.ZSTD
            || Compressibility.isWorth(codec, block, content, size, bundling.unitBytes(), scratch)
        ? codec
        : null;
  }

  private ZstdCodec forSmall(ByteBuffer content) {
    ZstdCodec best = withDictionary;
    if (best != null) {
      return best;
    }
    DictionaryTraining samples = training;
    if (samples != null && isCompared && samples.offer(content)) {
      beginTraining(samples);
    }
    return plain;
  }

  private void beginTraining(DictionaryTraining samples) {
    try {
      trainer.execute(() -> train(samples));
    } catch (OutOfMemoryError e) {
      log.debug("no thread to train a dictionary for {}: {}", directory, e.toString());
      samples.offerAgain();
    }
  }

  private void train(DictionaryTraining samples) {
    try {
      useTrained(samples);
    } catch (RuntimeException | Error e) {
      log.warn("cannot train a dictionary for {}", directory, e);
    }
  }

  private void useTrained(DictionaryTraining samples) {
    Dictionary trained = samples.train(plain);
    if (trained != null && directory != null && use(trained)) {
      log.info("compressing small files in {} with a dictionary from now on", directory);
    }
  }

  /** Saves and uses a dictionary; false if there is another, or it cannot be saved. */
  private synchronized boolean use(Dictionary added) {
    if (dictionary != null || (directory != null && !DictionaryFile.save(directory, added))) {
      return false;
    }
    dictionary = added;
    withDictionary = new ZstdCodec(Math.max(1, compression.level()), added);
    return true;
  }

  /**
   * Uses the dictionary of another tier if this one has none; false unless both are then the same.
   *
   * @param other the directory of that dictionary's file
   */
  boolean shareDictionary(Path other) {
    if (same.contains(other)) {
      return true;
    }
    Dictionary own = dictionary;
    Dictionary theirs = isCompared || own != null ? DictionaryFile.find(other) : null;
    if (theirs == null) {
      return false;
    }
    boolean isSame = own == null ? use(theirs) : Arrays.equals(own.bytes(), theirs.bytes());
    if (isSame && same.size() < MOST_SAME) {
      same.add(other);
    }
    return isSame;
  }

  /**
   * Whether a copy of another tier can be one of this tier as it is. Uses the dictionary that the
   * copy needs if this tier has none.
   *
   * @param other the directory of the other tier's dictionary
   */
  public boolean accepts(CopyRecord copy, Path other) {
    long size = copy.version().size();
    boolean isBundled =
        copy.codec() == RAW ? bundling.takesRaw(size) : bundling.takesCompressed(size);
    return (copy.extent() == null || isBundled)
        && (copy.codec() != ZstdCodec.WITH_DICTIONARY || shareDictionary(other))
        && canRead(copy);
  }

  /**
   * Opens a copy that serves only bytes that match their checksums; takes over the reader.
   *
   * @param record the checksums to compare with; null for a raw copy that was verified in this
   *     session
   * @param memory used to compare and decompress
   * @param whenVerified called once, when all blocks of a raw copy were verified
   * @throws MismatchException if it is not a readable copy of the file's version
   */
  public OpenCopy open(
      Inode inode,
      CopyReader reader,
      @Nullable CopyRecord record,
      DirectMemory memory,
      Runnable whenVerified)
      throws IOException {
    if (record != null && !isReadable(record, inode)) {
      throw new MismatchException("this version of pmfs cannot read its record");
    }
    if (record != null && record.codec() != RAW) {
      ZstdCodec codec = byNumber(record.codec());
      if (codec == null) {
        throw new MismatchException("the dictionary it needs is missing or damaged");
      }
      return new CompressedCopy(reader, record, codec, memory);
    }
    if (reader.size() != inode.attributes().size()) {
      throw new MismatchException(
          "it has " + reader.size() + " bytes instead of " + inode.attributes().size());
    }
    return record == null ? reader : new RawCopy(reader, record, memory.scratch(), whenVerified);
  }

  private static boolean isReadable(CopyRecord copy, Inode inode) {
    return isKnown(copy) && copy.version().equals(inode.attributes().version());
  }

  /** Whether the recorded copy can be read by this version, with the tier's dictionary. */
  public boolean canRead(CopyRecord copy) {
    return isKnown(copy) && (copy.codec() == RAW || byNumber(copy.codec()) != null);
  }

  private static boolean isKnown(CopyRecord copy) {
    int blockSize = copy.blockSize();
    boolean knownCodec =
        switch (copy.codec()) {
          case RAW -> blockSize == Blocks.SIZE;
          case ZstdCodec.NUMBER, ZstdCodec.WITH_DICTIONARY ->
              blockSize > 0 && Blocks.SIZE % blockSize == 0;
          default -> false;
        };
    return knownCodec && copy.checksums().count() == Frames.count(copy.version().size(), blockSize);
  }

  /**
   * Called before the tier is compared with the records. Until {@link #counted} no dictionary is
   * trained, because it would be mistaken for the one that older copies need.
   */
  public void isToBeCompared() {
    isCompared = false;
  }

  /**
   * Called when the tier was compared with the records.
   *
   * @param bytes of content in its copies
   */
  public void counted(long bytes) {
    contentBytes.set(bytes);
    isCompared = true;
  }

  /** Rewrites the dictionary's file if it was removed. */
  public void keepDictionary() {
    Dictionary needed = dictionary;
    if (needed != null && directory != null && !DictionaryFile.isThere(directory, needed)) {
      log.warn("the dictionary in {} was removed; rewriting it", directory);
      DictionaryFile.save(directory, needed);
    }
  }

  /** Adds to the content size; negative for removed content. */
  public void count(long bytes) {
    contentBytes.updateAndGet(known -> known == UNKNOWN ? known : known + bytes);
  }

  /** Bytes of content in the copies; -1 if unknown. */
  public long contentBytes() {
    return Math.max(-1, contentBytes.get());
  }

  @Override
  public void close() {
    plain.close();
    ZstdCodec other = withDictionary;
    if (other != null) {
      other.close();
    }
  }
}
