package io.pmfs.cluster.server;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http.HttpHeaders;
import io.pmfs.cluster.peers.HttpLimits;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.PeerFormat;
import io.pmfs.cluster.peers.PeerFrames;
import io.pmfs.cluster.peers.Refusal;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * Answers with a directory: frames of entries, and an end frame that distinguishes a complete
 * answer from a truncated one.
 */
final class DirectoryAnswer {
  private static final int FRAME_HEAD_BYTES = 1 + Integer.BYTES;

  private final PeerAnswer answer;
  private final CRC32C crc = new CRC32C();
  private ByteBuf frame;
  private long count;

  private DirectoryAnswer(PeerAnswer answer) {
    this.answer = answer;
    this.frame = newFrame();
  }

  static void send(PeerService service, FileName directory, PeerAnswer answer)
      throws FsException, PeerException {
    DirectoryAnswer directoryAnswer = new DirectoryAnswer(answer);
    try {
      service.list(directory, directoryAnswer::add);
    } catch (FsException e) {
      directoryAnswer.fail(Refusal.of(e));
      return;
    } catch (PeerException e) {
      directoryAnswer.fail(Refusal.of(e, false));
      return;
    }
    directoryAnswer.end();
  }

  private static ByteBuf newFrame() {
    return Unpooled.buffer(1024, HttpLimits.MAX_FRAME_BYTES).writerIndex(FRAME_HEAD_BYTES);
  }

  private void add(List<SourceEntry> entries) {
    for (SourceEntry entry : entries) {
      PeerFormat.putEntry(frame, entry);
      count++;
      if (frame.readableBytes() >= HttpLimits.FRAME_BYTES) {
        flush();
      }
    }
  }

  private void flush() {
    int size = frame.readableBytes() - FRAME_HEAD_BYTES;
    frame.setByte(0, PeerFrames.ENTRIES).setInt(1, size);
    crc.update(ByteBuffer.wrap(frame.array(), FRAME_HEAD_BYTES, size));
    begin();
    answer.send(frame);
    frame = newFrame();
  }

  private void begin() {
    if (!answer.isHeadQueued()) {
      HttpHeaders headers = PeerFormat.headers();
      answer.beginFrames(headers);
    }
  }

  private void end() {
    if (frame.readableBytes() > FRAME_HEAD_BYTES) {
      flush();
    }
    begin();
    ByteBuf end = Unpooled.buffer(1 + Long.BYTES + Integer.BYTES);
    answer.send(end.writeByte(PeerFrames.END).writeLong(count).writeInt((int) crc.getValue()));
    answer.end();
  }

  private void fail(Refusal refusal) {
    if (!answer.isHeadQueued()) {
      answer.refuse(refusal, PeerFormat.headers());
      return;
    }
    answer.send(refused(refusal));
    answer.end();
  }

  public static ByteBuf refused(Refusal refusal) {
    byte[] line = refusal.line().getBytes(UTF_8);
    return Unpooled.buffer(5 + line.length)
        .writeByte(PeerFrames.REFUSED)
        .writeShort(refusal.status().code())
        .writeShort(line.length)
        .writeBytes(line);
  }
}
