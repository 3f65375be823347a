package io.pmfs.cluster.server;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.CompositeByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelPromise;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.DefaultHttpContent;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.util.ReferenceCountUtil;
import io.pmfs.cluster.peers.PeerFrames;
import io.pmfs.cluster.peers.Refusal;
import io.pmfs.cluster.peers.RequestSignature;
import io.pmfs.memory.ReadResult;
import java.io.IOException;

/**
 * The answer to one request, written by one worker. At most {@value #MAX_PENDING_BYTES} bytes are
 * buffered for the peer: a worker that writes more waits, without counting as one of the working
 * {@link Workers}, until the peer takes them or the connection is closed. Bytes written after the
 * peer has disconnected are dropped.
 */
@SuppressWarnings("FutureReturnValueIgnored") // a failed write closes the channel; see isGone
final class PeerAnswer {
  private static final int MAX_PENDING_BYTES = 256 << 10;

  private final Channel channel;
  private final PeerCounters counters;
  private final boolean keepAlive;
  private final Runnable whenDone;
  private final long sinceNanos = System.nanoTime();

  /** Set before the head is queued: from then on nothing may be sent ahead of it. */
  private volatile boolean headQueued;

  /** Whether {@link PeerFrames#WAIT} may be sent; set by the event loop after the head. */
  private volatile boolean framed;

  private volatile boolean ended;
  private volatile long lastNanos = sinceNanos;
  private long pending; // GUARDED_BY(this)

  PeerAnswer(Channel channel, PeerCounters counters, boolean keepAlive, Runnable whenDone) {
    this.channel = channel;
    this.counters = counters;
    this.keepAlive = keepAlive;
    this.whenDone = whenDone;
  }

  boolean isHeadQueued() {
    return headQueued;
  }

  boolean isFramed() {
    return framed;
  }

  boolean isEnded() {
    return ended;
  }

  /** When the answer was created or last written to, by System.nanoTime(). */
  long lastNanos() {
    return lastNanos;
  }

  boolean isGone() {
    return !channel.isActive();
  }

  ByteBuf allocate(int size) {
    return channel.alloc().directBuffer(size, size);
  }

  /** A buffer composed of up to {@code count} others. */
  CompositeByteBuf compose(int count) {
    return channel.alloc().compositeBuffer(Math.max(1, count));
  }

  /**
   * Sends a complete answer and takes ownership of its body. For HEAD the body is empty and the
   * headers contain its size.
   */
  void full(HttpResponseStatus status, HttpHeaders headers, ByteBuf body) {
    int size = body.readableBytes();
    DefaultFullHttpResponse response =
        new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, status, body);
    response.headers().set(headers);
    if (!headers.contains(HttpHeaderNames.CONTENT_LENGTH)) {
      response.headers().set(HttpHeaderNames.CONTENT_LENGTH, size);
    }
    beginHead(response);
    counters.bytes.add(size);
    finish(response);
  }

  void refuse(Refusal refusal, HttpHeaders headers) {
    counters.refused(String.valueOf(refusal.status().code()));
    if (refusal.clock() != null) {
      headers.set(RequestSignature.CLOCK, refusal.clock());
    }
    if (refusal.errno() != null) {
      headers.set("Pmfs-Errno", refusal.errno());
    }
    headers.set(HttpHeaderNames.CONTENT_TYPE, "text/plain; charset=utf-8");
    full(
        refusal.status(), headers, Unpooled.wrappedBuffer((refusal.line() + "\n").getBytes(UTF_8)));
  }

  /** Begins an answer whose headers contain its size. */
  void begin(HttpResponseStatus status, HttpHeaders headers) {
    DefaultHttpResponse response = new DefaultHttpResponse(HttpVersion.HTTP_1_1, status);
    response.headers().set(headers);
    beginHead(response);
    channel.write(response);
  }

  /** Begins an answer made of frames, each of which is {@link #send sent} whole. */
  void beginFrames(HttpHeaders headers) {
    headers.set(HttpHeaderNames.TRANSFER_ENCODING, HttpHeaderValues.CHUNKED);
    headers.set(HttpHeaderNames.CONTENT_TYPE, HttpHeaderValues.APPLICATION_OCTET_STREAM);
    begin(HttpResponseStatus.OK, headers);
    channel.eventLoop().execute(() -> framed = true);
  }

  private void beginHead(HttpResponse response) {
    if (headQueued) {
      throw new IllegalStateException("the request already has an answer");
    }
    if (!keepAlive) {
      response.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.CLOSE);
    }
    headQueued = true;
    lastNanos = System.nanoTime();
    counters.longestWaitMillis.accumulate((lastNanos - sinceNanos) / 1_000_000);
  }

  /** Sends bytes and takes ownership of them. */
  void send(ByteBuf bytes) {
    int size = bytes.readableBytes();
    lastNanos = System.nanoTime();
    counters.bytes.add(size);
    synchronized (this) {
      pending += size;
    }
    write(
        new DefaultHttpContent(bytes),
        () -> {
          synchronized (this) {
            pending -= size;
            notifyAll();
          }
        });
    awaitRoom();
  }

  /** Sends bytes, which it owns; returns when they are sent or the peer has disconnected. */
  void sendWhole(ByteBuf bytes) {
    int size = bytes.readableBytes();
    lastNanos = System.nanoTime();
    counters.bytes.add(size);
    await(channel.writeAndFlush(new DefaultHttpContent(bytes)));
  }

  private static void await(ChannelFuture sent) {
    if (!sent.isDone()) {
      Workers.await(sent::awaitUninterruptibly);
    }
  }

  private synchronized boolean hasRoom() {
    return pending <= MAX_PENDING_BYTES || isGone();
  }

  private void awaitRoom() {
    if (!hasRoom()) {
      Workers.await(this::waitForRoom);
    }
  }

  private synchronized void waitForRoom() {
    boolean interrupted = false;
    // Every write ends: the peer takes it, or the connection is closed because it stalls.
    while (!hasRoom()) {
      try {
        wait(1000);
      } catch (InterruptedException e) {
        interrupted = true;
        channel.close();
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Sends a range of a file and returns when it is sent or the peer has disconnected.
   *
   * @throws IOException if the file could not be read; the connection is then closed
   */
  void send(ReadResult.FileRange range) throws IOException {
    BorrowedFileRegion region = new BorrowedFileRegion(range);
    lastNanos = System.nanoTime();
    counters.bytes.add(range.size());
    ChannelFuture sent = channel.writeAndFlush(region);
    // The file is borrowed until this method returns, so it must not return early.
    await(sent);
    IOException failure = region.failure();
    if (failure != null) {
      throw failure;
    }
  }

  void end() {
    framed = false;
    finish(LastHttpContent.EMPTY_LAST_CONTENT);
  }

  private void finish(Object last) {
    ended = true;
    // When the connection is closed, channelInactive ends the answer on the event loop.
    write(
        last,
        () -> {
          if (channel.eventLoop().inEventLoop()) {
            whenDone.run();
          }
        });
  }

  /** Writes a message; the event loop runs {@code whenWritten} before it reads the next request. */
  private void write(Object message, Runnable whenWritten) {
    if (isGone()) {
      ReferenceCountUtil.release(message);
      whenWritten.run();
      return;
    }
    ChannelPromise written = channel.newPromise();
    written.addListener(future -> whenWritten.run());
    channel.writeAndFlush(message, written);
  }

  /**
   * Closes the connection: the only end of an incomplete answer that the peer cannot mistake for a
   * complete one.
   */
  void breakOff() {
    counters.failed.increment();
    channel.close();
  }
}
