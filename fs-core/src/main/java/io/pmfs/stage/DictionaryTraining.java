package io.pmfs.stage;

import io.pmfs.compression.Codec;
import io.pmfs.compression.Dictionary;
import io.pmfs.compression.ZstdCodec;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Samples of small files, of which a dictionary is trained when there are enough. It is used only
 * if the files that were kept out of the training take a twentieth less of the disk with it.
 */
final class DictionaryTraining {
  private static final Logger log = LoggerFactory.getLogger(DictionaryTraining.class);

  /** Larger files have enough in themselves to refer to. */
  static final int LARGEST_BYTES = 64 * 1024;

  /** As much as the zstd program trains, and a hundred times that in samples, as it advises. */
  static final int DICTIONARY_BYTES = 110 * 1024;

  private static final int SAMPLE_BYTES = 100 * DICTIONARY_BYTES;
  private static final int MAX_SAMPLES = 20_000;

  /** Of so many samples, one is for the trial. */
  private static final int TRIAL_SHARE = 8;

  private final int level;
  private final int unitBytes;
  private final int enoughBytes;
  private final List<byte[]> samples = new ArrayList<>(); // GUARDED_BY(this)
  private int sampledBytes; // GUARDED_BY(this)
  private boolean over; // GUARDED_BY(this)

  /**
   * For one tier.
   *
   * @param unitBytes in what units copies take room
   */
  DictionaryTraining(int level, int unitBytes) {
    this(level, unitBytes, SAMPLE_BYTES);
  }

  /** With so many bytes of samples, for tests. */
  DictionaryTraining(int level, int unitBytes, int enoughBytes) {
    this.level = level;
    this.unitBytes = unitBytes;
    this.enoughBytes = enoughBytes;
  }

  /** Takes a file; says, once, that there are enough. */
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

  /**
   * The dictionary; null if there is none that helps.
   *
   * @param plain what copies are compressed with without it
   */
  @Nullable Dictionary train(Codec plain) {
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
        "a dictionary makes {} KiB of a tier {} KiB: {}",
        without >> 10,
        with >> 10,
        helps ? "it is used" : "too little, it is not used");
    return helps ? dictionary : null;
  }

  private long storedSize(List<byte[]> files, Codec codec) {
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
