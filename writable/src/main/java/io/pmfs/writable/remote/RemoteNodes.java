package io.pmfs.writable.remote;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeAway;
import io.pmfs.writable.NodeData;
import java.io.IOException;
import java.time.Instant;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The data files of the other nodes of a writable mount, which this node owns. A request waits as
 * long as a daemon may take to be replaced, and fails at once if the node has been away for longer.
 * Thread-safe.
 */
public final class RemoteNodes implements NodeData.Nodes {
  public static final long PATIENCE_MILLIS = 8000;
  private static final long PAUSE_MILLIS = 100;

  private final NodeLink link;
  private final long patienceMillis;
  private final Map<UUID, NodeData> nodes = new ConcurrentHashMap<>();

  /** Time since which each unreachable node does not answer, as {@link System#nanoTime}. */
  private final Map<UUID, Long> lost = new ConcurrentHashMap<>();

  /** The connections to the other nodes. Thread-safe. */
  public interface NodeLink {
    /**
     * Sends a request to a node once.
     *
     * @throws BusyException if the request was not taken, because too many others wait
     * @throws IOException if there is no answer; the node may still have received the request
     */
    byte[] ask(UUID node, String name, byte[] body) throws IOException;
  }

  public RemoteNodes(NodeLink link, long patienceMillis) {
    this.link = link;
    this.patienceMillis = patienceMillis;
  }

  @Override
  public NodeData on(UUID node, String name) {
    return nodes.computeIfAbsent(node, id -> new RemoteData(id, name));
  }

  @Override
  public void isBack(UUID node) {
    lost.remove(node);
  }

  /** The owner's requests to a node; {@link NodeServer} answers them. */
  enum NodeRequest {
    FREEZE("freeze"),
    READ("read"),
    SET_TIMES("setTimes"),
    COPY("copy");

    final String title;

    NodeRequest(String title) {
      this.title = title;
    }

    static @Nullable NodeRequest of(String title) {
      for (NodeRequest request : values()) {
        if (request.title.equals(title)) {
          return request;
        }
      }
      return null;
    }
  }

  /** The data files of one node; each method sends a request. */
  private final class RemoteData implements NodeData {
    private final UUID node;
    private final String name;

    RemoteData(UUID node, String name) {
      this.node = node;
      this.name = name;
    }

    @Override
    public Frozen freeze(Id file, boolean sync) throws FsException {
      MessageWriter values = Message.request().file(file).flag(sync);
      return ask(NodeRequest.FREEZE, values, MessageReader::frozen);
    }

    @Override
    public byte[] read(Id file, long offset, int size) throws FsException {
      MessageWriter values = Message.request().file(file).number(offset).small(size);
      return ask(NodeRequest.READ, values, MessageReader::bytes);
    }

    @Override
    public void setTimes(Id file, Instant accessTime, Instant modificationTime) throws FsException {
      MessageWriter values = Message.request().file(file).time(accessTime);
      ask(NodeRequest.SET_TIMES, values.time(modificationTime), Owner.NOTHING);
    }

    @Override
    public void copy(Id file, Target target, long from, long end) throws FsException {
      MessageWriter values = Message.request().file(file).target(target).number(from).number(end);
      ask(NodeRequest.COPY, values, Owner.NOTHING);
    }

    private <T> T ask(NodeRequest request, MessageWriter values, MessageReader.Reading<T> result)
        throws FsException {
      byte[] body = values.toBytes();
      Attempts attempts = new Attempts(patienceMillis);
      while (true) {
        attempts.begin();
        try {
          Message.Answer answer = Message.Answer.of(link.ask(node, request.title, body));
          switch (answer.kind()) {
            case RESULT -> {
              lost.remove(node);
              return result.from(answer.in());
            }
            case FAILURE -> {
              lost.remove(node);
              throw answer.in().failure();
            }
            case OTHER_VERSION ->
                throw new FsException(
                    Errno.EPROTO, name + " runs another version of pmfs; use the same one");
            default -> throw new IOException("its daemon has just started");
          }
        } catch (IOException e) {
          boolean isBusy = e instanceof BusyException;
          long away = isBusy ? attempts.failedMillis() : awayMillis(node, attempts);
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
  }

  private long awayMillis(UUID node, Attempts attempts) {
    long now = System.nanoTime();
    Long before = lost.putIfAbsent(node, now);
    long away = before == null ? 0 : now - before;
    return Math.max(TimeUnit.NANOSECONDS.toMillis(away), attempts.failedMillis());
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
