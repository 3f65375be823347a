package io.pmfs.cluster;

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
import io.pmfs.tier.ReadResult;
import java.io.IOException;

/**
 * The answer to one request, written by one worker. At most {@value #MAX_PENDING_BYTES} bytes wait
 * for the peer: who writes more waits, as one of the {@link Workers} that do not count then, until
 * the peer takes them or its connection is closed. What is written to a peer that is gone is
 * dropped.
 */
@SuppressWarnings("FutureReturnValueIgnored") // what fails closes the channel, which isGone tells
final class PeerAnswer {
  private static final int MAX_PENDING_BYTES = 256 << 10;

  private final Channel channel;
  private final PeerCounters counters;
  private final boolean keepAlive;
  private final Runnable whenDone;
  private final long sinceNanos = System.nanoTime();

  /** Set before the head is on its way: nothing else may be sent ahead of it from then on. */
  private volatile boolean headQueued;

  /** Whether frames that mean nothing may be sent; true on the event loop only behind the head. */
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

  /** When it was begun, or something was written last. */
  long lastNanos() {
    return lastNanos;
  }

  boolean isGone() {
    return !channel.isActive();
  }

  ByteBuf allocate(int size) {
    return channel.alloc().directBuffer(size, size);
  }

  /** A buffer of others. */
  CompositeByteBuf compose(int count) {
    return channel.alloc().compositeBuffer(Math.max(1, count));
  }

  /** Answers with a body that it takes over; a HEAD's is empty and its size in the headers. */
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

  /** Answers that there is no answer. */
  void refuse(Refusal refusal, HttpHeaders headers) {
    counters.refused(String.valueOf(refusal.status().code()));
    if (refusal.errno() != null) {
      headers.set("Pmfs-Errno", refusal.errno());
    }
    headers.set(HttpHeaderNames.CONTENT_TYPE, "text/plain; charset=utf-8");
    full(
        refusal.status(), headers, Unpooled.wrappedBuffer((refusal.line() + "\n").getBytes(UTF_8)));
  }

  /** Begins an answer whose size is among the headers. */
  void begin(HttpResponseStatus status, HttpHeaders headers) {
    DefaultHttpResponse response = new DefaultHttpResponse(HttpVersion.HTTP_1_1, status);
    response.headers().set(headers);
    beginHead(response);
    channel.write(response);
  }

  /** Begins an answer that consists of frames, each {@link #send sent} whole. */
  void beginFrames(HttpHeaders headers) {
    headers.set(HttpHeaderNames.TRANSFER_ENCODING, HttpHeaderValues.CHUNKED);
    headers.set(HttpHeaderNames.CONTENT_TYPE, HttpHeaderValues.APPLICATION_OCTET_STREAM);
    begin(HttpResponseStatus.OK, headers);
    channel.eventLoop().execute(() -> framed = true);
  }

  private void beginHead(HttpResponse response) {
    if (headQueued) {
      throw new IllegalStateException("a second answer");
    }
    if (!keepAlive) {
      response.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.CLOSE);
    }
    headQueued = true;
    lastNanos = System.nanoTime();
    counters.longestWaitMillis.accumulate((lastNanos - sinceNanos) / 1_000_000);
  }

  /** Sends bytes that it takes over. */
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

  /** Sends bytes that it takes over, and returns when they are sent or the peer is gone. */
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
    // Each write ends: by being taken, or because the connection is closed when it stalls.
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
   * Sends a range of a file and returns when it is sent or the peer is gone.
   *
   * @throws IOException if the file could not be read; the connection is closed then
   */
  void send(ReadResult.FileRange range) throws IOException {
    BorrowedFileRegion region = new BorrowedFileRegion(range);
    lastNanos = System.nanoTime();
    counters.bytes.add(range.size());
    ChannelFuture sent = channel.writeAndFlush(region);
    // The file is ours only until this returns, so there is no leaving early.
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
    // Of a connection that is closed the event loop knows.
    write(
        last,
        () -> {
          if (channel.eventLoop().inEventLoop()) {
            whenDone.run();
          }
        });
  }

  /** Has told of the end of a write by the event loop before it reads the next request. */
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

  /** Ends an answer that cannot be completed in the only way that the peer does not take for it. */
  void breakOff() {
    counters.failed.increment();
    channel.close();
  }
}
