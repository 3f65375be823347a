package io.pmfs.daemon.http;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import java.util.Map;

/**
 * An answer in memory, the last on its connection.
 *
 * @param headers in addition to the type, the length and {@code Connection: close}
 */
public record HttpReply(
    HttpResponseStatus status, String type, Map<String, String> headers, String body) {

  /**
   * Sends the answer and closes the connection. Thread-safe.
   *
   * @param withBody whether the client wants the body too
   */
  @SuppressWarnings("FutureReturnValueIgnored") // a channel reports failures to its handlers
  public void send(ChannelHandlerContext context, boolean withBody) {
    byte[] bytes = body.getBytes(UTF_8);
    DefaultFullHttpResponse response =
        new DefaultFullHttpResponse(
            HttpVersion.HTTP_1_1,
            status,
            withBody ? Unpooled.wrappedBuffer(bytes) : Unpooled.EMPTY_BUFFER);
    response
        .headers()
        .set(HttpHeaderNames.CONTENT_TYPE, type)
        .setInt(HttpHeaderNames.CONTENT_LENGTH, bytes.length)
        .set(HttpHeaderNames.CONNECTION, "close");
    headers.forEach(response.headers()::set);
    context.writeAndFlush(response).addListener(ChannelFutureListener.CLOSE);
  }
}
