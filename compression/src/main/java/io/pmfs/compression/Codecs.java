package io.pmfs.compression;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** All codecs. Safe for use by many threads. */
public final class Codecs implements AutoCloseable {
  private final List<Codec> codecs;

  /**
   * Keeps native memory until it is closed.
   *
   * @param zstdLevel see {@link ZstdCodec}
   */
  public Codecs(int zstdLevel) {
    codecs = List.of(new RawCodec(), new ZstdCodec(zstdLevel));
  }

  /** The codec with that number; null if there is none. */
  public @Nullable Codec byNumber(int number) {
    return codecs.stream().filter(codec -> codec.number() == number).findFirst().orElse(null);
  }

  /** The codec with that name; null if there is none. */
  public @Nullable Codec byName(String name) {
    return codecs.stream().filter(codec -> codec.name().equals(name)).findFirst().orElse(null);
  }

  @Override
  public void close() {
    codecs.forEach(Codec::close);
  }
}
