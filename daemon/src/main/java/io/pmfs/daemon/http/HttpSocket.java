package io.pmfs.daemon.http;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.util.concurrent.DefaultThreadFactory;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An HTTP server socket, one request for each connection: one thread reads and writes, workers make
 * the answers, and at most {@value #MAX_WAITING} requests wait for a worker. The handlers of a
 * connection limit what it may send. Safe for use by many threads; close is idempotent.
 */
@SuppressWarnings("FutureReturnValueIgnored") // a channel reports failures to its handlers
public final class HttpSocket implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(HttpSocket.class);

  private static final int MAX_WAITING = 32;
  private static final int CLOSE_SECONDS = 2;

  private final int mostConnections;
  private final boolean evicts;
  private final EventLoopGroup loop;
  private final ThreadPoolExecutor workers;
  private final ChannelGroup connections = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);
  private volatile @Nullable Channel listener;

  /** The open connections, oldest first; true for those whose request has come. The loop's own. */
  private final Map<Channel, Boolean> inOrder = new LinkedHashMap<>();

  /**
   * Does not listen yet.
   *
   * @param name the name of its threads
   * @param threads the number of workers
   * @param mostConnections further connections are closed at once, or take the place of another
   * @param evicts whether they take the place of another: of one that has sent no request yet, if
   *     there is such a one, of the address that has the most, and of those the oldest
   */
  public HttpSocket(String name, int threads, int mostConnections, boolean evicts) {
    this.mostConnections = mostConnections;
    this.evicts = evicts;
    loop =
        new MultiThreadIoEventLoopGroup(
            1, new DefaultThreadFactory(name + "-io", true), NioIoHandler.newFactory());
    workers =
        new ThreadPoolExecutor(
            threads,
            threads,
            0,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(MAX_WAITING),
            new DefaultThreadFactory(name, true));
    // Later there may be no other.
    workers.prestartCoreThread();
  }

  /**
   * Listens. Call it only once.
   *
   * @param bootstrap the kind of the socket and its options
   * @param handlers adds the handlers of a new connection
   * @throws IOException if it cannot listen there; the message is only the reason, and this socket
   *     is closed
   */
  public void listen(ServerBootstrap bootstrap, SocketAddress address, Consumer<Channel> handlers)
      throws IOException {
    var bound =
        bootstrap
            .group(loop)
            .childHandler(
                new ChannelInitializer<Channel>() {
                  @Override
                  protected void initChannel(Channel channel) {
                    accept(channel, handlers);
                  }
                })
            .bind(address)
            .awaitUninterruptibly();
    if (!bound.isSuccess()) {
      close();
      throw new IOException(bound.cause().getMessage(), bound.cause());
    }
    listener = bound.channel();
  }

  private void accept(Channel channel, Consumer<Channel> handlers) {
    Channel victim = connections.size() < mostConnections ? null : evicts ? victim() : channel;
    if (victim != null) {
      inOrder.remove(victim);
      victim.close();
    }
    if (victim == channel) {
      return;
    }
    inOrder.put(channel, false);
    channel.closeFuture().addListener(closed -> inOrder.remove(channel));
    connections.add(channel);
    handlers.accept(channel);
  }

  /** Idle connections make way first, so that many of them keep no request from its answer. */
  private @Nullable Channel victim() {
    boolean hasIdle = inOrder.containsValue(false);
    Map<String, Integer> counts = new HashMap<>();
    inOrder.forEach(
        (open, isAsked) -> {
          if (!hasIdle || !isAsked) {
            counts.merge(host(open), 1, Integer::sum);
          }
        });
    Channel found = null;
    int most = 0;
    for (Map.Entry<Channel, Boolean> open : inOrder.entrySet()) {
      int count = counts.getOrDefault(host(open.getKey()), 0);
      if ((!hasIdle || !open.getValue()) && count > most) {
        most = count;
        found = open.getKey();
      }
    }
    return found;
  }

  private static String host(Channel channel) {
    return channel.remoteAddress() instanceof InetSocketAddress address
        ? String.valueOf(address.getAddress())
        : "";
  }

  /** Says that the request of a connection has come. Call it in its event loop. */
  public void requested(Channel channel) {
    inOrder.replace(channel, true);
  }

  /** The address, with the port that was chosen; null if it does not listen. */
  public @Nullable SocketAddress address() {
    Channel listening = listener;
    return listening == null ? null : listening.localAddress();
  }

  /**
   * Makes an answer in a worker.
   *
   * @param refusal run instead, by the caller, if too many requests wait or the socket is closed
   */
  public void work(Runnable answer, Runnable refusal) {
    Runnable guarded = () -> run(answer);
    try {
      workers.execute(guarded);
    } catch (RejectedExecutionException e) {
      refusal.run();
    } catch (OutOfMemoryError e) {
      // Another worker cannot be started; the first one is there until the end.
      if (workers.isShutdown() || !workers.getQueue().offer(guarded)) {
        refusal.run();
      }
    }
  }

  /** Nothing that is thrown ends a worker. */
  private static void run(Runnable answer) {
    try {
      answer.run();
    } catch (RuntimeException | Error e) {
      log.error("no answer", e);
    }
  }

  /** Stops accepting connections. */
  public void stopListening() {
    Channel listening = listener;
    if (listening != null) {
      listening.close().awaitUninterruptibly(CLOSE_SECONDS, TimeUnit.SECONDS);
    }
  }

  /**
   * Lets the connections that were accepted get their answers, also those whose request is still to
   * come, for {@value #CLOSE_SECONDS} seconds at most. Stop listening first.
   */
  public void finish() {
    try {
      connections.newCloseFuture().await(CLOSE_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Drops the connections and ends the threads. */
  @Override
  public void close() {
    stopListening();
    connections.close().awaitUninterruptibly(CLOSE_SECONDS, TimeUnit.SECONDS);
    workers.shutdownNow();
    loop.shutdownGracefully(0, 1, TimeUnit.SECONDS)
        .awaitUninterruptibly(CLOSE_SECONDS, TimeUnit.SECONDS);
  }
}
