package io.pmfs.compression;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdDictTrainer;
import com.github.luben.zstd.ZstdException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A Zstandard dictionary (RFC 8878, section 5): what many small files have in common. Immutable.
 */
public final class Dictionary {
  private final byte[] bytes;
  private final long id;

  private Dictionary(byte[] bytes, long id) {
    this.bytes = bytes;
    this.id = id;
  }

  /** Takes over what a file holds; null if that is no dictionary. */
  public static @Nullable Dictionary of(byte[] bytes) {
    long id = Zstd.getDictIdFromDict(bytes);
    return id == 0 ? null : new Dictionary(bytes, id);
  }

  /**
   * Trains one of so many bytes at most; null if the samples do not do, because there are too few
   * or they have nothing in common.
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

  /** What a file holds that {@code zstd -D} takes; not to be changed. */
  @SuppressWarnings("MutableArray")
  public byte[] bytes() {
    return bytes;
  }

  /** What each frame names that needs it. */
  public long id() {
    return id;
  }
}
