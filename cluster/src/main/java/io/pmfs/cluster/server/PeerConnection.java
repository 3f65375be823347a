package io.pmfs.cluster.server;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.DecoderResult;
import io.netty.handler.codec.TooLongFrameException;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.DefaultHttpContent;
import io.netty.handler.codec.http.DefaultHttpHeadersFactory;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.handler.codec.http.TooLongHttpHeaderException;
import io.netty.handler.codec.http.TooLongHttpLineException;
import io.netty.util.ReferenceCountUtil;
import io.pmfs.cluster.peers.HttpLimits;
import io.pmfs.cluster.peers.PeerFrames;
import io.pmfs.cluster.peers.Refusal;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A peer's connection: reads requests, one at a time, passes each to a worker when it is complete,
 * and limits every wait. Used by its event loop only.
 */
@SuppressWarnings("FutureReturnValueIgnored") // a channel reports failures to its handlers
final class PeerConnection extends ChannelInboundHandlerAdapter {
  private static final Logger log = LoggerFactory.getLogger(PeerConnection.class);
  private static final Duration LINGER = Duration.ofSeconds(1);
  private static final int LEAST_TAKEN_BYTES = 256 << 10;

  private enum State {
    /** Between requests, or while a head arrives. */
    IDLE,
    /** After a head, before the end of its body. */
    BODY,
    /** A worker has the request. */
    ANSWERING,
    /** Refused; further input is discarded, so that the peer can read the reason. */
    CLOSING
  }

  private final PeerServer server;
  private final PeerLimits limits;
  private State state = State.IDLE;
  private long sinceNanos = System.nanoTime();
  private boolean hasBytes;
  private long signNanos;

  private @Nullable HttpRequest head;
  private @Nullable PeerRequest request;
  private @Nullable Refusal refusal;
  private @Nullable ByteBuf body;
  private @Nullable PeerAnswer answer;

  /** Input that arrived while a worker had a request; no more is read until it is processed. */
  private final Deque<Object> held = new ArrayDeque<>();

  /** When the peer last took bytes; the next two fields hold the state of the output then. */
  private long stallNanos;

  private long lastPending;
  private long lastProgress;

  PeerConnection(PeerServer server) {
    this.server = server;
    this.limits = server.limits();
  }

  @Override
  public void channelActive(ChannelHandlerContext ctx) {
    server.opened(this, ctx);
    ctx.fireChannelActive();
  }

  @Override
  public void channelInactive(ChannelHandlerContext ctx) {
    server.closed(this, ctx);
    dropBody();
    dropHeld();
    if (state == State.ANSWERING && answer != null && !answer.isEnded()) {
      server.counters().failed.increment();
    }
    endAnswer();
    ctx.fireChannelInactive();
  }

  /** Bytes of a request have arrived, perhaps not yet a whole head. */
  void bytesCame() {
    if (state == State.IDLE && !hasBytes) {
      hasBytes = true;
      sinceNanos = System.nanoTime();
    }
  }

  @Override
  public void channelRead(ChannelHandlerContext ctx, Object message) {
    if (state == State.ANSWERING) {
      // A peer may have its whole answer before this node knows that it was sent.
      held.add(message);
      ctx.channel().config().setAutoRead(false);
      return;
    }
    take(ctx, message);
  }

  private void take(ChannelHandlerContext ctx, Object message) {
    try {
      if (state == State.CLOSING) {
        return;
      }
      if (message instanceof HttpRequest next) {
        begin(ctx, next);
      } else if (message instanceof HttpContent content) {
        content(ctx, content);
      }
    } finally {
      ReferenceCountUtil.release(message);
    }
  }

  private void begin(ChannelHandlerContext ctx, HttpRequest next) {
    state = State.BODY;
    sinceNanos = System.nanoTime();
    head = next;
    try {
      check(next.decoderResult());
      if (!next.protocolVersion().equals(HttpVersion.HTTP_1_1)) {
        throw new Refusal(
            HttpResponseStatus.HTTP_VERSION_NOT_SUPPORTED, "this server speaks only HTTP/1.1");
      }
      server.authenticate(next);
      request = PeerRequest.of(next);
      if (HttpUtil.getContentLength(next, 0L) > request.resource().maxBodyBytes()) {
        throw tooLarge();
      }
      if (HttpUtil.is100ContinueExpected(next)) {
        ctx.writeAndFlush(informational(HttpResponseStatus.CONTINUE));
      }
    } catch (Refusal e) {
      refusal = e;
    } catch (NumberFormatException e) {
      refusal = new Refusal(HttpResponseStatus.BAD_REQUEST, "Content-Length is not a number");
    }
    boolean hasBody =
        HttpUtil.isTransferEncodingChunked(next)
            || !"0".equals(next.headers().get(HttpHeaderNames.CONTENT_LENGTH, "0"));
    if (refusal != null && (hasBody || next.decoderResult().isFailure())) {
      refuseAndClose(ctx, refusal);
    }
  }

  private static void check(DecoderResult result) throws Refusal {
    if (!result.isFailure()) {
      return;
    }
    Throwable cause = result.cause();
    if (cause instanceof TooLongHttpLineException) {
      throw new Refusal(
          HttpResponseStatus.REQUEST_URI_TOO_LONG,
          "the request line has more than " + HttpLimits.MAX_LINE_BYTES + " bytes");
    }
    if (cause instanceof TooLongHttpHeaderException || cause instanceof TooLongFrameException) {
      throw new Refusal(
          HttpResponseStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
          "the request head has more than " + HttpLimits.MAX_HEAD_BYTES + " bytes");
    }
    throw new Refusal(HttpResponseStatus.BAD_REQUEST, "the request is not valid HTTP");
  }

  private void content(ChannelHandlerContext ctx, HttpContent content) {
    if (state != State.BODY) {
      return;
    }
    try {
      check(content.decoderResult());
      collect(ctx, content.content());
      if (content instanceof LastHttpContent) {
        complete(ctx);
      }
    } catch (Refusal e) {
      refuseAndClose(ctx, e);
    }
  }

  private void collect(ChannelHandlerContext ctx, ByteBuf bytes) throws Refusal {
    if (!bytes.isReadable() || request == null) {
      return;
    }
    if (body == null) {
      body = ctx.alloc().heapBuffer();
    }
    if (body.readableBytes() + bytes.readableBytes() > request.resource().maxBodyBytes()) {
      throw tooLarge();
    }
    body.writeBytes(bytes);
  }

  private static Refusal tooLarge() {
    return new Refusal(HttpResponseStatus.REQUEST_ENTITY_TOO_LARGE, "the body is too large");
  }

  private void complete(ChannelHandlerContext ctx) throws Refusal {
    HttpRequest whole = head;
    if (whole == null) {
      return;
    }
    byte[] bytes = body == null ? new byte[0] : ByteBufUtil.getBytes(body);
    dropBody();
    if (refusal == null) {
      server.authenticateBody(whole, bytes);
    }
    state = State.ANSWERING;
    stallNanos = signNanos = System.nanoTime();
    lastPending = 0;
    boolean keepAlive = HttpUtil.isKeepAlive(whole);
    PeerAnswer next =
        new PeerAnswer(ctx.channel(), server.counters(), keepAlive, () -> answered(ctx, keepAlive));
    answer = next;
    server.counters().requests.increment();
    server.counters().active.incrementAndGet();
    Refusal reason = refusal;
    PeerRequest asked = request;
    head = null;
    request = null;
    refusal = null;
    if (reason != null || asked == null) {
      next.refuse(
          reason == null
              ? new Refusal(HttpResponseStatus.BAD_REQUEST, "the request is missing")
              : reason,
          DefaultHttpHeadersFactory.headersFactory().newHeaders());
    } else {
      server.answer(asked, bytes, next);
    }
  }

  /** Called on the event loop when the last write of an answer has ended. */
  private void answered(ChannelHandlerContext ctx, boolean keepAlive) {
    endAnswer();
    if (state != State.ANSWERING) {
      return;
    }
    state = State.IDLE;
    hasBytes = false;
    sinceNanos = System.nanoTime();
    if (!keepAlive) {
      linger(ctx);
      return;
    }
    while (state != State.ANSWERING && !held.isEmpty()) {
      take(ctx, held.remove());
    }
    ctx.channel().config().setAutoRead(held.isEmpty());
  }

  private void dropHeld() {
    held.forEach(ReferenceCountUtil::release);
    held.clear();
  }

  private void endAnswer() {
    if (answer != null) {
      answer = null;
      server.counters().active.decrementAndGet();
    }
  }

  private void refuseAndClose(ChannelHandlerContext ctx, Refusal reason) {
    dropBody();
    server.counters().requests.increment();
    PeerAnswer last = new PeerAnswer(ctx.channel(), server.counters(), false, () -> linger(ctx));
    state = State.CLOSING;
    sinceNanos = System.nanoTime();
    last.refuse(reason, DefaultHttpHeadersFactory.headersFactory().newHeaders());
  }

  /** Closes after a pause, so that the peer can read what was sent (RFC 9112, 9.6). */
  private void linger(ChannelHandlerContext ctx) {
    state = State.CLOSING;
    dropHeld();
    ctx.channel().config().setAutoRead(true);
    sinceNanos = System.nanoTime();
    if (ctx.channel() instanceof SocketChannel socket && ctx.pipeline().get("tls") == null) {
      socket.shutdownOutput();
    } else {
      ctx.close();
    }
  }

  private void dropBody() {
    if (body != null) {
      body.release();
      body = null;
    }
  }

  /** Called periodically, several times within the shortest limit. */
  void tick(ChannelHandlerContext ctx) {
    long now = System.nanoTime();
    switch (state) {
      case IDLE -> {
        if (now - sinceNanos > (hasBytes ? limits.request() : limits.idle()).toNanos()) {
          if (hasBytes) {
            server.counters().refused("slow");
          }
          ctx.close();
        }
      }
      case BODY -> {
        if (now - sinceNanos > limits.request().toNanos()) {
          server.counters().refused("slow");
          refuseAndClose(
              ctx,
              new Refusal(
                  HttpResponseStatus.REQUEST_TIMEOUT, "the request did not arrive in time"));
        }
      }
      case ANSWERING -> {
        sayProcessing(ctx, now);
        watchStall(ctx, now);
      }
      case CLOSING -> {
        if (now - sinceNanos > LINGER.toNanos()) {
          ctx.close();
        }
      }
    }
  }

  /**
   * Sends the peer a sign that its request is being processed. A head or frame that a worker has
   * queued, or queues later, is sent after what is written here, since this runs on the event loop.
   */
  private void sayProcessing(ChannelHandlerContext ctx, long now) {
    PeerAnswer current = answer;
    if (current == null || current.isEnded()) {
      return;
    }
    long silent = now - Math.max(current.lastNanos(), signNanos);
    if (silent < limits.processing().toNanos()) {
      return;
    }
    if (!current.isHeadQueued()) {
      ctx.writeAndFlush(informational(HttpResponseStatus.PROCESSING));
    } else if (current.isFramed()) {
      ByteBuf wait = Unpooled.wrappedBuffer(new byte[] {PeerFrames.WAIT});
      ctx.writeAndFlush(new DefaultHttpContent(wait));
    }
    signNanos = now;
  }

  private void watchStall(ChannelHandlerContext ctx, long now) {
    ChannelOutboundBuffer out = ctx.channel().unsafe().outboundBuffer();
    long pending = out == null ? 0 : out.totalPendingWriteBytes();
    long progress = out == null ? 0 : out.currentProgress();
    boolean taken =
        pending == 0
            || pending != lastPending
            || progress < lastProgress
            || progress - lastProgress >= LEAST_TAKEN_BYTES;
    if (taken) {
      stallNanos = now;
      lastPending = pending;
      lastProgress = progress;
    } else if (now - stallNanos > limits.writeStall().toNanos()) {
      server.counters().refused("stalled");
      ctx.close();
    }
  }

  private static DefaultFullHttpResponse informational(HttpResponseStatus status) {
    return new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, status, Unpooled.EMPTY_BUFFER);
  }

  @Override
  public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
    log.debug(
        "the connection of peer {} failed: {}", ctx.channel().remoteAddress(), cause.toString());
    ctx.close();
  }
}
