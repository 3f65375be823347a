package io.pmfs.daemon.http;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Promise: an accepted connection gets its answer even while the socket closes. */
@Timeout(30)
final class HttpSocketTest {
  private final HttpSocket http = new HttpSocket("test", 1, 10, false);
  private final CountDownLatch accepted = new CountDownLatch(1);

  @BeforeEach
  void listen() throws IOException {
    http.listen(
        new ServerBootstrap().channel(NioServerSocketChannel.class),
        new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
        channel -> {
          channel.pipeline().addLast(new Answers());
          accepted.countDown();
        });
  }

  @AfterEach
  void close() {
    http.close();
  }

  private final class Answers extends SimpleChannelInboundHandler<ByteBuf> {
    @Override
    protected void channelRead0(ChannelHandlerContext context, ByteBuf request) {
      http.work(() -> answer(context, "done"), () -> answer(context, "refused"));
    }

    private static void answer(ChannelHandlerContext context, String text) {
      context
          .writeAndFlush(Unpooled.copiedBuffer(text, US_ASCII))
          .addListener(ChannelFutureListener.CLOSE);
    }
  }

  private Socket connect() throws Exception {
    InetSocketAddress address = (InetSocketAddress) Objects.requireNonNull(http.address());
    Socket client = new Socket(address.getAddress(), address.getPort());
    assertThat(accepted.await(10, TimeUnit.SECONDS)).isTrue();
    return client;
  }

  @Test
  void finish_beforeARequestHasCome_answersIt() throws Exception {
    try (Socket client = connect()) {
      http.stopListening();
      CompletableFuture<Void> end = CompletableFuture.runAsync(http::finish);
      // Long enough for the close to begin, except on a very busy machine.
      Thread.sleep(200);
      client.getOutputStream().write("request".getBytes(US_ASCII));
      assertThat(new String(client.getInputStream().readAllBytes(), US_ASCII)).isEqualTo("done");
      end.get();
    }
  }

  @Test
  void finish_withAClientThatAsksNothing_ends() throws Exception {
    try (Socket client = connect()) {
      http.stopListening();
      http.finish();
      http.close();
      assertThat(client.getInputStream().read()).isEqualTo(-1);
    }
  }
}
