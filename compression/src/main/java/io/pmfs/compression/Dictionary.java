package io.pmfs.compression;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdDictTrainer;
import com.github.luben.zstd.ZstdException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A Zstandard dictionary (RFC 8878, section 5): the content that many small files have in common.
 * Immutable.
 */
public final class Dictionary {
  private final byte[] bytes;

  private Dictionary(byte[] bytes) {
    this.bytes = bytes;
  }

  /** Takes ownership of a file's content; null if it is not a dictionary. */
  public static @Nullable Dictionary of(byte[] bytes) {
    return Zstd.getDictIdFromDict(bytes) == 0 ? null : new Dictionary(bytes);
  }

  /**
   * Trains a dictionary of at most {@code maxBytes}; null if the samples are too few or have
   * nothing in common.
   */
  public static @Nullable Dictionary train(List<byte[]> samples, int maxBytes, int level) {
    int total = samples.stream().mapToInt(sample -> sample.length).sum();
    ZstdDictTrainer trainer = new ZstdDictTrainer(total, maxBytes, level);
    samples.forEach(trainer::addSample);
    try {
      return of(trainer.trainSamples());
    } catch (ZstdException e) {
      return null;
    }
  }

  /** The content of a file for {@code zstd -D}; callers must not change it. */
  @SuppressWarnings("MutableArray")
  public byte[] bytes() {
    return bytes;
  }
}
