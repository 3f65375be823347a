package io.pmfs.packing;

import io.pmfs.compression.CodecException;
import io.pmfs.compression.FrameReader;
import io.pmfs.tier.FsException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * The frames of compressed shards that were decompressed last, in a few places. Which place a frame
 * may be in follows from its number; so as many frames as there are places are decompressed at
 * once, and memory has a bound. Safe for use by many threads.
 */
final class FrameCache implements AutoCloseable {
  /** What {@code pmfs pack} writes is far below; all places together stay within 128 MiB. */
  static final int MAX_FRAME_BYTES = 8 << 20;

  private static final int PLACES = 8;

  private final FrameReader reader = new FrameReader();
  private final Place[] places = new Place[PLACES];

  FrameCache() {
    for (int i = 0; i < PLACES; i++) {
      places[i] = new Place();
    }
  }

  /**
   * Copies bytes of a frame's content.
   *
   * @param offset in the content of the frame
   */
  void copy(CompressedShard shard, int frame, int offset, ByteBuffer destination)
      throws FsException, CodecException {
    Place place = places[Math.floorMod(frame + shard.number(), PLACES)];
    synchronized (place) {
      if (place.shard != shard || place.frame != frame) {
        fill(place, shard, frame);
      }
      int count = Math.min(destination.remaining(), place.content.limit() - offset);
      destination.put(place.content.duplicate().position(offset).limit(offset + count));
    }
  }

  private void fill(Place place, CompressedShard shard, int frame)
      throws FsException, CodecException {
    place.shard = null;
    place.stored = atLeast(place.stored, (int) shard.table().compressedSize(frame));
    place.content = atLeast(place.content, (int) shard.table().contentSize(frame));
    shard.readFrame(frame, place.stored);
    reader.decompress(shard.table(), frame, place.stored.flip(), place.content);
    place.content.flip();
    place.shard = shard;
    place.frame = frame;
  }

  private static ByteBuffer atLeast(ByteBuffer buffer, int size) {
    ByteBuffer enough = buffer.capacity() >= size ? buffer : ByteBuffer.allocateDirect(size);
    return enough.clear().limit(size);
  }

  @Override
  public void close() {
    reader.close();
  }

  /** GUARDED_BY(itself) */
  private static final class Place {
    private ByteBuffer stored = ByteBuffer.allocateDirect(0);
    private ByteBuffer content = ByteBuffer.allocateDirect(0);
    private @Nullable CompressedShard shard;
    private int frame;
  }
}
