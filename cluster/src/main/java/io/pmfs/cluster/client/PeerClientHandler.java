package io.pmfs.cluster.client;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.codec.DecoderResult;
import io.netty.handler.codec.PrematureChannelClosureException;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpStatusClass;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.util.ReferenceCountUtil;
import io.pmfs.cluster.peers.PeerException;
import org.jspecify.annotations.Nullable;

/** Passes what a connection receives to the exchange that waits for it. */
@SuppressWarnings("FutureReturnValueIgnored") // nothing waits for a close
final class PeerClientHandler extends ChannelInboundHandlerAdapter {
  private volatile @Nullable PeerExchange exchange;
  private boolean isInformational;

  /** Called before the request is written; one exchange at a time. */
  void expect(PeerExchange next) {
    exchange = next;
  }

  /** Sees the bytes before the decoder does. */
  final class Bytes extends ChannelInboundHandlerAdapter {
    @Override
    public void channelRead(ChannelHandlerContext ctx, Object message) {
      PeerExchange current = exchange;
      if (current != null) {
        current.bytesCame();
      }
      ctx.fireChannelRead(message);
    }
  }

  @Override
  public void channelRead(ChannelHandlerContext ctx, Object message) {
    try {
      PeerExchange current = exchange;
      if (current == null) {
        ctx.close(); // no request is in progress
      } else {
        receive(ctx, current, message);
      }
    } finally {
      ReferenceCountUtil.release(message);
    }
  }

  private void receive(ChannelHandlerContext ctx, PeerExchange current, Object message) {
    if (message instanceof HttpResponse head) {
      boolean isUpgrade = head.status().equals(HttpResponseStatus.SWITCHING_PROTOCOLS);
      if (head.decoderResult().isFailure() || isUpgrade) {
        refuse(ctx, current, head.decoderResult());
        return;
      }
      isInformational = head.status().codeClass() == HttpStatusClass.INFORMATIONAL;
      if (isInformational) {
        current.waits();
      } else {
        current.head(head, HttpUtil.isKeepAlive(head));
      }
    }
    if (message instanceof HttpContent content && !isInformational) {
      if (content.decoderResult().isFailure()) {
        refuse(ctx, current, content.decoderResult());
        return;
      }
      current.content(content.content());
      if (content instanceof LastHttpContent) {
        exchange = null;
        current.end();
      }
    }
  }

  private void refuse(ChannelHandlerContext ctx, PeerExchange current, DecoderResult result) {
    exchange = null;
    if (result.isFailure() && result.cause() instanceof PrematureChannelClosureException) {
      current.closed("closed the connection");
    } else {
      current.fail(PeerException.Kind.CORRUPT, "sent an answer that is not valid HTTP");
    }
    ctx.close();
  }

  @Override
  public void channelInactive(ChannelHandlerContext ctx) {
    fail("closed the connection");
    ctx.fireChannelInactive();
  }

  @Override
  public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
    fail("broke the connection: " + cause.getMessage());
    ctx.close();
  }

  private void fail(String what) {
    PeerExchange current = exchange;
    exchange = null;
    if (current != null) {
      current.closed(what);
    }
  }
}
