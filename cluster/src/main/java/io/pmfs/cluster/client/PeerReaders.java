package io.pmfs.cluster.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.common.base.Splitter;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.HttpLimits;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.PeerFormat;
import io.pmfs.cluster.peers.PeerFrames;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.formats.Blocks;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/** Readers for the answers of peers. */
final class PeerReaders {
  private PeerReaders() {}

  private static PeerException corrupt(Member peer, String what) {
    return new PeerException(PeerException.Kind.CORRUPT, peer + " sent " + what);
  }

  static final class Range implements PeerExchange.Reader {
    private final Member peer;
    private final SourceVersion expected;
    private final @Nullable String contentRange;
    private final ByteBuffer destination;
    private final int start;
    private @Nullable SourceStatus status;
    private String[] sums = {};
    private boolean areOfBlocks;
    private List<UUID> holders = List.of();

    /**
     * @param contentRange the Content-Range that the answer must have; null if it must be the whole
     *     file
     */
    Range(
        Member peer,
        SourceVersion expected,
        @Nullable String contentRange,
        ByteBuffer destination) {
      this.peer = peer;
      this.expected = expected;
      this.contentRange = contentRange;
      this.destination = destination;
      this.start = destination.position();
    }

    @Override
    public void head(HttpResponse head) throws PeerException {
      String range = head.headers().get(HttpHeaderNames.CONTENT_RANGE);
      boolean isAsked =
          contentRange == null ? head.status().code() == 200 : contentRange.equals(range);
      if (!isAsked || HttpUtil.getContentLength(head, -1L) != destination.remaining()) {
        throw corrupt(peer, "a range other than the requested one");
      }
      SourceStatus sent = PeerFormat.statusHeader(head.headers().get("Pmfs-Status"));
      if (!sent.attributes().version().equals(expected)) {
        throw corrupt(peer, "a version other than the requested one");
      }
      status = sent;
      holders = holders(head.headers().get(PeerFormat.HOLDERS, ""));
      String checksum = head.headers().get("Pmfs-Checksum", "");
      areOfBlocks = checksum.startsWith("blocks ");
      sums = checksum.substring(checksum.indexOf(' ') + 1).split(",", -1);
      int count = areOfBlocks ? (destination.remaining() + Blocks.SIZE - 1) / Blocks.SIZE : 1;
      boolean isKnown = areOfBlocks || checksum.startsWith("body ");
      if (!isKnown || sums.length != count) {
        throw corrupt(peer, "no checksums that fit the range");
      }
    }

    @Override
    public boolean content(ByteBuf bytes) throws PeerException {
      int count = bytes.readableBytes();
      if (count > destination.remaining()) {
        throw corrupt(peer, "more bytes than requested");
      }
      int limit = destination.limit();
      destination.limit(destination.position() + count);
      bytes.readBytes(destination);
      destination.limit(limit);
      return true;
    }

    /** The peer has a copy, or has already read the whole range. */
    @Override
    public boolean isSteady() {
      return true;
    }

    @Override
    public void end() throws PeerException {
      if (status == null || destination.hasRemaining()) {
        throw corrupt(peer, "fewer bytes than requested");
      }
    }

    private List<UUID> holders(String text) throws PeerException {
      try {
        return Splitter.on(',')
            .omitEmptyStrings()
            .splitToStream(text)
            .map(UUID::fromString)
            .toList();
      } catch (IllegalArgumentException e) {
        throw corrupt(peer, "a malformed list of holders");
      }
    }

    /** Called by the thread that asked: compares the bytes with their checksums. */
    PeerClient.Given verify() throws PeerException {
      int end = destination.limit();
      int unit = areOfBlocks ? Blocks.SIZE : Math.max(1, end - start);
      int index = 0;
      for (int at = start; index < sums.length; at += unit) {
        ByteBuffer block = destination.slice(at, Math.min(unit, end - at));
        if (Blocks.checksum(block) != sum(sums[index])) {
          throw corrupt(peer, "bytes that do not match their checksum");
        }
        index++;
      }
      if (status == null) {
        throw corrupt(peer, "an answer without attributes");
      }
      return new PeerClient.Given(status, holders);
    }

    private int sum(String text) throws PeerException {
      try {
        return HexFormat.fromHexDigits(text);
      } catch (IllegalArgumentException e) {
        throw corrupt(peer, "a malformed checksum");
      }
    }
  }

  /** Collects an answer in memory until it is complete. */
  static final class Small implements PeerExchange.Reader {
    private final Member peer;
    private final ByteBuf body = Unpooled.buffer();
    private long size;

    Small(Member peer) {
      this.peer = peer;
    }

    @Override
    public void head(HttpResponse head) throws PeerException {
      size = HttpUtil.getContentLength(head, -1L);
      if (size < 0 || size > HttpLimits.MAX_SMALL_ANSWER_BYTES) {
        throw corrupt(peer, "an answer that is too large or has no Content-Length");
      }
    }

    @Override
    public boolean content(ByteBuf bytes) throws PeerException {
      if (body.readableBytes() + bytes.readableBytes() > size) {
        throw corrupt(peer, "more bytes than its Content-Length");
      }
      body.writeBytes(bytes);
      return true;
    }

    @Override
    public boolean isSteady() {
      return true;
    }

    @Override
    public void end() throws PeerException {
      if (body.readableBytes() != size) {
        throw corrupt(peer, "fewer bytes than its Content-Length");
      }
    }

    ByteBuf body() {
      return body;
    }
  }

  /** Reads an answer made of frames. */
  abstract static class Framed implements PeerExchange.Reader {
    private static final int REFUSED_HEAD_BYTES = 5;

    final Member peer;
    private final ByteBuf frame = Unpooled.buffer(256);

    Framed(Member peer) {
      this.peer = peer;
    }

    @Override
    public void head(HttpResponse head) throws PeerException {
      if (!HttpUtil.isTransferEncodingChunked(head)) {
        throw corrupt(peer, "an answer that is not in frames");
      }
    }

    @Override
    public final boolean content(ByteBuf bytes) throws PeerException {
      boolean goesOn = false;
      while (bytes.isReadable()) {
        if (takesBytes(bytes)) {
          goesOn = true;
          continue;
        }
        frame.writeBytes(bytes, Math.min(bytes.readableBytes(), missing()));
        goesOn |= frame.getByte(0) != PeerFrames.WAIT;
        if (missing() == 0) {
          byte kind = frame.readByte();
          if (kind != PeerFrames.WAIT) {
            frame(kind, frame);
          }
          frame.clear();
        }
      }
      return goesOn;
    }

    /** The peer sends a frame when the source has given its content. */
    @Override
    public final boolean isSteady() {
      return false;
    }

    private int missing() throws PeerException {
      int has = frame.readableBytes();
      if (has == 0) {
        return 1;
      }
      byte kind = frame.getByte(0);
      if (kind == PeerFrames.WAIT) {
        return 0;
      }
      if (kind == PeerFrames.REFUSED) {
        return (has < REFUSED_HEAD_BYTES
                ? REFUSED_HEAD_BYTES
                : REFUSED_HEAD_BYTES + frame.getUnsignedShort(3))
            - has;
      }
      return size(kind, frame) - has;
    }

    final boolean isBetweenFrames() {
      return !frame.isReadable();
    }

    final PeerException refusal(ByteBuf in) {
      int code = in.readUnsignedShort();
      String line = in.readCharSequence(in.readUnsignedShort(), UTF_8).toString();
      PeerException.Kind kind = PeerExchange.kind(HttpResponseStatus.valueOf(code));
      return new PeerException(kind, peer + " answered " + code + ": " + line);
    }

    /** Takes bytes that do not belong to a frame's head; returns false if none are expected. */
    boolean takesBytes(ByteBuf bytes) throws PeerException {
      return false;
    }

    /** Returns how many bytes of a frame to collect, given those that have arrived. */
    abstract int size(byte kind, ByteBuf beginning) throws PeerException;

    /** Takes a frame, positioned after its kind. */
    abstract void frame(byte kind, ByteBuf in) throws PeerException;
  }

  /**
   * Reads a directory and keeps it encoded until it is known to be complete: millions of names fit
   * outside the heap, not in it. Must be closed.
   */
  static final class Directory extends Framed implements AutoCloseable {
    private static final int ENTRIES_AT_ONCE = 1024;

    private final List<ByteBuf> frames = new ArrayList<>();
    private final CRC32C crc = new CRC32C();
    private long bytes;
    private long count;
    private boolean ended;

    Directory(Member peer) {
      super(peer);
    }

    @Override
    int size(byte kind, ByteBuf beginning) throws PeerException {
      if (kind == PeerFrames.END) {
        return 1 + Long.BYTES + Integer.BYTES;
      }
      if (kind != PeerFrames.ENTRIES) {
        throw corrupt(peer, "a frame that does not belong in a directory");
      }
      int head = 1 + Integer.BYTES;
      if (beginning.readableBytes() < head) {
        return head;
      }
      int size = beginning.getInt(1);
      if (size < 0 || size > HttpLimits.MAX_FRAME_BYTES) {
        throw corrupt(peer, "a frame of the invalid size " + size);
      }
      return head + size;
    }

    @Override
    void frame(byte kind, ByteBuf in) throws PeerException {
      if (kind == PeerFrames.REFUSED) {
        throw refusal(in);
      }
      if (ended) {
        throw corrupt(peer, "more frames after the end of a directory");
      }
      if (kind == PeerFrames.END) {
        ended = true;
        if (in.readLong() != count || in.readInt() != (int) crc.getValue()) {
          throw corrupt(peer, "a directory that does not match its checksum");
        }
        return;
      }
      in.readInt();
      bytes += in.readableBytes();
      if (bytes > HttpLimits.MAX_DIRECTORY_BYTES) {
        throw new PeerException(
            PeerException.Kind.REFUSED,
            peer + " has a directory of more than " + HttpLimits.MAX_DIRECTORY_BYTES + " bytes");
      }
      crc.update(in.nioBuffer());
      frames.add(Unpooled.directBuffer(in.readableBytes()).writeBytes(in.duplicate()));
      while (in.isReadable()) {
        PeerFormat.entry(in);
        count++;
      }
    }

    @Override
    public void end() throws PeerException {
      if (!ended || !isBetweenFrames()) {
        throw corrupt(peer, "a directory without its end frame");
      }
    }

    void forEach(Consumer<List<SourceEntry>> batches) {
      List<SourceEntry> batch = new ArrayList<>(ENTRIES_AT_ONCE);
      for (ByteBuf frame : frames) {
        while (frame.isReadable()) {
          batch.add(PeerFormat.entry(frame));
          if (batch.size() == ENTRIES_AT_ONCE) {
            batches.accept(batch);
            batch = new ArrayList<>(ENTRIES_AT_ONCE);
          }
        }
      }
      if (!batch.isEmpty()) {
        batches.accept(batch);
      }
    }

    @Override
    public void close() {
      frames.forEach(ByteBuf::release);
      frames.clear();
    }
  }

  /** Reads the files of a batch, each into its destination. */
  static final class Batch extends Framed {
    private final List<SmallRead> reads;
    private int index;
    private @Nullable SmallRead current;

    Batch(Member peer, List<SmallRead> reads) {
      super(peer);
      this.reads = reads;
    }

    @Override
    boolean takesBytes(ByteBuf bytes) {
      SmallRead read = current;
      if (read == null) {
        return false;
      }
      if (read.take(bytes)) {
        current = null;
      }
      return true;
    }

    @Override
    int size(byte kind, ByteBuf beginning) throws PeerException {
      if (kind != PeerFrames.FILE) {
        throw corrupt(peer, "a frame that does not belong in a batch");
      }
      return PeerFormat.FILE_HEAD_BYTES;
    }

    @Override
    void frame(byte kind, ByteBuf in) throws PeerException {
      if (index == reads.size()) {
        throw corrupt(peer, "more files than requested");
      }
      SmallRead read = reads.get(index++);
      if (kind == PeerFrames.REFUSED) {
        read.fail(refusal(in));
        return;
      }
      SourceStatus status = PeerFormat.status(in);
      boolean isExpected = status.attributes().version().equals(read.item().expected());
      if (!isExpected || in.readInt() != read.item().expected().size()) {
        throw corrupt(peer, "a version other than the requested one");
      }
      current = read.begin(status, in.readInt()) ? null : read;
    }

    @Override
    public void end() throws PeerException {
      if (index < reads.size() || current != null || !isBetweenFrames()) {
        throw corrupt(peer, "fewer files or bytes than requested");
      }
    }
  }
}
