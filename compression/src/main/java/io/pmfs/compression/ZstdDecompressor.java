package io.pmfs.compression;

import com.github.luben.zstd.ZstdDecompressCtx;
import com.github.luben.zstd.ZstdDictDecompress;
import com.github.luben.zstd.ZstdException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** Decompresses Zstandard frames with reused native contexts. Thread-safe. */
final class ZstdDecompressor implements AutoCloseable {
  private final ContextPool<ZstdDecompressCtx> contexts;

  ZstdDecompressor(@Nullable Dictionary dictionary) {
    ZstdDictDecompress prepared =
        dictionary == null ? null : new ZstdDictDecompress(dictionary.bytes());
    this.contexts =
        new ContextPool<>(
            () ->
                prepared == null
                    ? new ZstdDecompressCtx()
                    : new ZstdDecompressCtx().loadDict(prepared),
            prepared);
  }

  /** Like {@link ZstdCodec#decompress}, for any frame that the library accepts. */
  int decompress(ByteBuffer source, ByteBuffer target) throws CodecException {
    ZstdDecompressCtx context = contexts.take();
    try {
      int written =
          context.decompressDirectByteBuffer(
              target,
              target.position(),
              target.remaining(),
              source,
              source.position(),
              source.remaining());
      source.position(source.limit());
      target.position(target.position() + written);
      return written;
    } catch (ZstdException e) {
      throw new CodecException("zstd cannot decompress: " + e.getMessage(), e);
    } finally {
      contexts.giveBack(context);
    }
  }

  @Override
  public void close() {
    contexts.close();
  }
}
