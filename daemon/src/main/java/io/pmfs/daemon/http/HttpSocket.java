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
 * An HTTP server socket with one request per connection: one thread reads and writes, workers
 * compute the answers, and at most {@value #MAX_WAITING} requests wait for a worker. Handlers limit
 * what a connection may send. Thread-safe; close is idempotent.
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

  /**
   * The open connections, oldest first, and whether their request has arrived. Used only by the
   * event loop.
   */
  private final Map<Channel, Boolean> inOrder = new LinkedHashMap<>();

  /**
   * Does not listen yet.
   *
   * @param name the name of its threads
   * @param threads the number of workers
   * @param mostConnections the limit, beyond which a new or an older connection is closed
   * @param evicts whether an older one is closed: preferably one without a request, of the address
   *     with the most connections, the oldest of these
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
    // Starting one may fail later.
    workers.prestartCoreThread();
  }

  /**
   * Listens. Call it only once.
   *
   * @param bootstrap the kind of the socket and its options
   * @param handlers adds the handlers of a new connection
   * @throws IOException if it cannot listen, with only the reason as message; the socket is then
   *     closed
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

  /** Prefers idle connections, so that a flood of them does not block requests. */
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

  /** Records that a connection's request has arrived. Call it in the event loop. */
  public void requested(Channel channel) {
    inOrder.replace(channel, true);
  }

  /** The address with the actual port; null unless listening. */
  public @Nullable SocketAddress address() {
    Channel listening = listener;
    return listening == null ? null : listening.localAddress();
  }

  /**
   * Runs {@code answer} in a worker.
   *
   * @param refusal run by the caller instead if too many requests wait or the socket is closed
   */
  public void work(Runnable answer, Runnable refusal) {
    Runnable guarded = () -> run(answer);
    try {
      workers.execute(guarded);
    } catch (RejectedExecutionException e) {
      refusal.run();
    } catch (OutOfMemoryError e) {
      // No further worker can be started; the first one always exists.
      if (workers.isShutdown() || !workers.getQueue().offer(guarded)) {
        refusal.run();
      }
    }
  }

  private static void run(Runnable answer) {
    try {
      answer.run();
    } catch (RuntimeException | Error e) {
      log.error("a request failed", e);
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
   * Waits up to {@value #CLOSE_SECONDS} seconds until accepted connections have sent requests and
   * received answers. Stop listening first.
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
