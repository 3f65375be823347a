package io.pmfs.writable.remote;

import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.writable.NodeAway;
import io.pmfs.writable.NodeData;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The data files of the other nodes of a writable mount, which this node owns. A request to a node
 * that does not answer waits as long as a daemon may take to be replaced, and fails at once when
 * the node has been away for longer. Safe for use by many threads.
 */
public final class RemoteNodes implements NodeData.Nodes {
  private static final long PATIENCE_MILLIS = 8000;
  private static final long PAUSE_MILLIS = 100;

  private final NodeLink link;
  private final long patienceMillis;
  private final Map<UUID, NodeData> nodes = new ConcurrentHashMap<>();

  /** Since when a node does not answer, as {@link System#nanoTime}. */
  private final Map<UUID, Long> lost = new ConcurrentHashMap<>();

  /** The way to the other nodes. Safe for use by many threads. */
  public interface NodeLink {
    /**
     * Brings a request to a node, once.
     *
     * @throws IOException if there is no answer; the node may have the request nevertheless
     */
    byte[] ask(UUID node, String name, byte[] body) throws IOException;
  }

  public RemoteNodes(NodeLink link) {
    this(link, PATIENCE_MILLIS);
  }

  /** With another time until requests fail, for tests. */
  public RemoteNodes(NodeLink link, long patienceMillis) {
    this.link = link;
    this.patienceMillis = patienceMillis;
  }

  @Override
  public NodeData on(UUID node, String name) {
    return nodes.computeIfAbsent(
        node,
        id ->
            (NodeData)
                Proxy.newProxyInstance(
                    RemoteNodes.class.getClassLoader(),
                    new Class<?>[] {NodeData.class},
                    (proxy, method, arguments) -> ask(id, name, method, arguments)));
  }

  private @Nullable Object ask(UUID node, String name, Method method, Object[] arguments)
      throws FsException {
    byte[] body = Message.request(method, arguments);
    long begin = System.nanoTime();
    while (true) {
      try {
        Message.Answer answer = new Message.Answer(link.ask(node, method.getName(), body));
        switch (answer.kind) {
          case RESULT -> {
            lost.remove(node);
            return answer.value(Message.result(method));
          }
          case FAILURE -> {
            lost.remove(node);
            throw answer.failure();
          }
          case OTHER_VERSION ->
              throw new FsException(
                  Errno.EPROTO, name + " runs another version of pmfs; use the same one");
          default -> throw new IOException("its daemon has just started");
        }
      } catch (IOException e) {
        long away = awayMillis(node, begin);
        if (away >= patienceMillis || !sleep()) {
          throw new FsException(
              Errno.EIO,
              "%s, which keeps what was written there, does not answer: %s"
                  .formatted(name, e.getMessage()),
              new NodeAway(name, false, away, e));
        }
      }
    }
  }

  private long awayMillis(UUID node, long begin) {
    Long before = lost.putIfAbsent(node, begin);
    return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - (before == null ? begin : before));
  }

  private static boolean sleep() {
    try {
      Thread.sleep(PAUSE_MILLIS);
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
