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
  private final long id;

  private Dictionary(byte[] bytes, long id) {
    this.bytes = bytes;
    this.id = id;
  }

  /** Takes ownership of a file's content; null if it is not a dictionary. */
  public static @Nullable Dictionary of(byte[] bytes) {
    long id = Zstd.getDictIdFromDict(bytes);
    return id == 0 ? null : new Dictionary(bytes, id);
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

  /** The id by which each frame names the dictionary that it needs. */
  public long id() {
    return id;
  }
}
