package io.pmfs.stage.formats;

import io.pmfs.compression.Dictionary;
import io.pmfs.compression.ZstdCodec;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Collects samples of small files, and trains a dictionary when there are enough. The dictionary is
 * used only if it saves at least a twentieth of the disk space of files not used for training.
 */
final class DictionaryTraining {
  private static final Logger log = LoggerFactory.getLogger(DictionaryTraining.class);

  /** Larger files contain enough repetition of their own. */
  static final int LARGEST_BYTES = 64 * 1024;

  /** The zstd program's default; it recommends a hundred times as many bytes of samples. */
  static final int DICTIONARY_BYTES = 110 * 1024;

  static final int SAMPLE_BYTES = 100 * DICTIONARY_BYTES;
  private static final int MAX_SAMPLES = 20_000;

  /** One in this many samples is kept for the trial. */
  private static final int TRIAL_SHARE = 8;

  private final int level;
  private final int unitBytes;
  private final int enoughBytes;
  private final List<byte[]> samples = new ArrayList<>(); // GUARDED_BY(this)
  private int sampledBytes; // GUARDED_BY(this)
  private boolean over; // GUARDED_BY(this)

  /**
   * Collects samples for one tier.
   *
   * @param unitBytes the allocation unit of copies
   * @param enoughBytes of samples to train with
   */
  DictionaryTraining(int level, int unitBytes, int enoughBytes) {
    this.level = level;
    this.unitBytes = unitBytes;
    this.enoughBytes = enoughBytes;
  }

  /** Adds a file; true once, when there are enough. */
  synchronized boolean offer(ByteBuffer content) {
    if (over || Compressibility.isCompressed(content)) {
      return false;
    }
    byte[] sample = new byte[content.remaining()];
    content.duplicate().get(sample);
    samples.add(sample);
    sampledBytes += sample.length;
    over = sampledBytes >= enoughBytes || samples.size() >= MAX_SAMPLES;
    return over;
  }

  /** Lets the next offered file start the training, because no thread could now. */
  synchronized void offerAgain() {
    sampledBytes -= samples.remove(samples.size() - 1).length;
    over = false;
  }

  /**
   * Trains the dictionary; null if it does not help.
   *
   * @param plain compresses copies without a dictionary
   */
  @Nullable Dictionary train(ZstdCodec plain) {
    List<byte[]> forTraining = new ArrayList<>();
    List<byte[]> forTrial = new ArrayList<>();
    synchronized (this) {
      for (int i = 0; i < samples.size(); i++) {
        (i % TRIAL_SHARE == 0 ? forTrial : forTraining).add(samples.get(i));
      }
      samples.clear();
    }
    Dictionary dictionary = Dictionary.train(forTraining, DICTIONARY_BYTES, level);
    if (dictionary == null) {
      log.info("small files have too little in common for a dictionary");
      return null;
    }
    long without = storedSize(forTrial, plain);
    long with;
    try (ZstdCodec trial = new ZstdCodec(level, dictionary)) {
      with = storedSize(forTrial, trial);
    }
    boolean helps = 20 * with <= 19 * without;
    log.info(
        "a dictionary reduces sample copies from {} KiB to {} KiB: {}",
        without >> 10,
        with >> 10,
        helps ? "it is used" : "too little, not used");
    return helps ? dictionary : null;
  }

  private long storedSize(List<byte[]> files, ZstdCodec codec) {
    ByteBuffer source = ByteBuffer.allocateDirect(LARGEST_BYTES);
    ByteBuffer target = ByteBuffer.allocateDirect(codec.maxCompressedSize(LARGEST_BYTES));
    long total = 0;
    for (byte[] file : files) {
      source.clear().put(file);
      total += Compressibility.taken(codec.compress(source.flip(), target.clear()), unitBytes);
    }
    return total;
  }
}
