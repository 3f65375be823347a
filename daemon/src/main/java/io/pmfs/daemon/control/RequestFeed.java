package io.pmfs.daemon.control;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.handler.codec.http.DefaultHttpContent;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.DefaultLastHttpContent;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.pmfs.daemon.requests.LineReader;
import io.pmfs.daemon.requests.LogLine;
import io.pmfs.daemon.requests.RequestLog;
import java.time.Instant;

/**
 * Lines of requests for one client of the control socket: a chunked answer that ends when the
 * client disconnects or the daemon stops. If the client is slow, lines are dropped, and a note
 * tells it how many requests are missing. A client that reads nothing for ten seconds is
 * disconnected.
 */
@SuppressWarnings("FutureReturnValueIgnored") // a failure closes the channel
final class RequestFeed implements LineReader {
  /** The bytes that may wait for one client. */
  private static final WriteBufferWaterMark BUFFER = new WriteBufferWaterMark(512 << 10, 1 << 20);

  private final Channel channel;
  private final RequestLog log;
  private long untaken; // GUARDED_BY(this)
  private boolean hasEnded; // GUARDED_BY(this)

  RequestFeed(Channel channel, RequestLog log) {
    this.channel = channel;
    this.log = log;
  }

  /** Starts the answer with lines from now on; false if there are too many readers. */
  synchronized boolean begin() {
    channel.config().setWriteBufferWaterMark(BUFFER);
    // take() waits for this method, so no line precedes the head.
    if (!log.add(this)) {
      return false;
    }
    DefaultHttpResponse head = new DefaultHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK);
    head.headers().set(HttpHeaderNames.CONTENT_TYPE, "text/plain; charset=utf-8");
    head.headers().set(HttpHeaderNames.TRANSFER_ENCODING, HttpHeaderValues.CHUNKED);
    head.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.CLOSE);
    channel.writeAndFlush(head);
    channel.closeFuture().addListener(closed -> log.remove(this));
    return true;
  }

  @Override
  public synchronized void take(String lines, int requests) {
    if (hasEnded) {
      return;
    }
    if (!channel.isWritable()) {
      untaken += requests;
      return;
    }
    channel.writeAndFlush(
        new DefaultHttpContent(Unpooled.wrappedBuffer((note() + lines).getBytes(UTF_8))));
  }

  private String note() {
    if (untaken == 0) {
      return "";
    }
    String note = new LogLine.Missing(Instant.now(), untaken, "the reader was too slow").text();
    untaken = 0;
    return note + "\n";
  }

  /** Ends the answer because the daemon stops. */
  synchronized void end() {
    if (!hasEnded) {
      hasEnded = true;
      log.remove(this);
      channel
          .writeAndFlush(new DefaultLastHttpContent(Unpooled.wrappedBuffer(note().getBytes(UTF_8))))
          .addListener(ChannelFutureListener.CLOSE);
    }
  }
}
