package io.pmfs.cache;

import io.pmfs.cache.CacheMessage.Kind;
import io.pmfs.cache.CacheMessage.Refusal;
import io.pmfs.fuse.system.DescriptorSocket;
import io.pmfs.fuse.system.PassedFile;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.LentFile;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A mount's connection to the cache of its node. On any failure the mount gets no copy; a later
 * request reconnects. Thread-safe.
 */
public final class CacheClient implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(CacheClient.class);

  /** A working cache answers in half this time, even if the source hangs. */
  private static final Duration LIMIT = Duration.ofSeconds(1);

  /** Longer than a working cache takes to report, unless the machine is overloaded. */
  private static final Duration REPORT_LIMIT = Duration.ofSeconds(5);

  /** Between attempts to connect. */
  private static final Duration PAUSE = Duration.ofSeconds(1);

  /** Between attempts after a timeout: each one blocks readers. */
  private static final Duration LONG_PAUSE = Duration.ofSeconds(10);

  private final Path path;
  private final AtomicLong lastId = new AtomicLong();
  private final LongAdder copyBytes = new LongAdder();
  private final LongAdder asked = new LongAdder();
  private final LongAdder refused = new LongAdder();
  private @Nullable Connection connection; // GUARDED_BY(this)
  private long nextAttempt = System.nanoTime(); // GUARDED_BY(this)
  private @Nullable String problem; // GUARDED_BY(this)
  private boolean isNotListedLogged; // GUARDED_BY(this)
  private boolean closed; // GUARDED_BY(this)

  /** Connects on the first request. */
  public CacheClient(Path path) {
    this.path = path;
  }

  /**
   * A mount's use of the cache.
   *
   * @param problem why there is no connection; null if connected, or not yet used
   */
  public record Statistics(long copyBytes, long asked, long refused, @Nullable String problem) {}

  public synchronized Statistics statistics() {
    return new Statistics(copyBytes.sum(), asked.sum(), refused.sum(), problem);
  }

  void countCopyBytes(int bytes) {
    copyBytes.add(bytes);
  }

  /**
   * Asks for a copy of an open file of the source.
   *
   * @param wanted how many bytes to wait for, briefly, if the copy is incomplete
   * @return null if there is none now
   */
  @Nullable OpenCopy ask(int descriptor, long wanted) {
    Connection current = connection();
    if (current == null) {
      return null;
    }
    asked.increment();
    Answer answer = current.ask(Kind.ASK, 0, wanted, descriptor);
    if (answer == null) {
      return null;
    }
    PassedFile file = answer.file;
    if (file != null) {
      return new OpenCopy(current, answer.message, file);
    }
    refused.increment();
    if (answer.message.kind() == Kind.REFUSED) {
      refused(Refusal.of(answer.message.bytes()));
    }
    return null;
  }

  private synchronized void refused(Refusal why) {
    if (why == Refusal.NOT_LISTED && !isNotListedLogged) {
      isNotListedLogged = true;
      log.warn("{}: the cache does not copy files of this source's file system", path);
    }
  }

  private synchronized @Nullable Connection connection() {
    Connection current = connection;
    if (current != null || closed || System.nanoTime() - nextAttempt < 0) {
      return current;
    }
    try {
      Connection made = begin(DescriptorSocket.connect(path, LIMIT));
      connection = made;
      log.info("{}: connected to the cache", path);
      problem = null;
      return made;
    } catch (FsException e) {
      away(String.valueOf(e.getMessage()), PAUSE);
      return null;
    }
  }

  private Connection begin(DescriptorSocket socket) throws FsException {
    Connection made = new Connection(socket);
    try {
      DaemonThread.start("cache", made::receive);
      return made;
    } catch (OutOfMemoryError e) {
      socket.close();
      throw new FsException(Errno.EAGAIN, e.toString(), e);
    }
  }

  /** Called with the lock held. */
  private void away(String why, Duration pause) {
    nextAttempt = System.nanoTime() + pause.toNanos();
    if (problem == null && !closed) {
      log.warn("{}: no cache, files are read from the source: {}", path, why);
      problem = why;
    }
  }

  private synchronized void lost(Connection ended, String why, Duration pause) {
    if (connection == ended) {
      connection = null;
      away(why, pause);
    }
  }

  @Override
  public synchronized void close() {
    closed = true;
    if (connection != null) {
      connection.socket.shutDown();
    }
  }

  /**
   * Fetches a cache's report, as this user may see it.
   *
   * @throws FsException EAGAIN if the cache does not answer, EPIPE if it closes the connection,
   *     EPROTO if it is of another version
   */
  public static CacheReport report(Path path) throws FsException {
    try (DescriptorSocket socket = DescriptorSocket.connect(path, LIMIT)) {
      socket.limitReceiving(REPORT_LIMIT);
      socket.send(new CacheMessage(Kind.STATUS, 1, 0, 0).encoded(), PassedFile.NONE);
      DescriptorSocket.Message answer = socket.receive();
      if (answer == null) {
        throw new FsException(Errno.EPIPE, path + " has closed the connection");
      }
      CacheMessage message = CacheMessage.parse(answer.bytes());
      CacheReport report = message == null ? null : CacheReport.ofJson(message.text());
      if (report == null) {
        throw new FsException(Errno.EPROTO, path + " is not a pmfs cache of this version");
      }
      return report;
    }
  }

  private record Answer(CacheMessage message, @Nullable PassedFile file) {
    private void drop() {
      if (file != null) {
        file.close();
      }
    }
  }

  private final class Connection {
    private final DescriptorSocket socket;
    private final Map<Long, CompletableFuture<@Nullable Answer>> questions =
        new ConcurrentHashMap<>();
    private volatile boolean ended;

    Connection(DescriptorSocket socket) {
      this.socket = socket;
    }

    void receive() {
      String why = "it closed the connection";
      try (socket) {
        DescriptorSocket.Message received;
        while ((received = socket.receive()) != null) {
          CacheMessage message = CacheMessage.parse(received.bytes());
          if (message == null) {
            why = "it is of another version";
            new Answer(new CacheMessage(Kind.REFUSED, 0, 0, 0), received.file()).drop();
            break;
          }
          answered(new Answer(message, received.file()));
        }
      } catch (FsException e) {
        why = String.valueOf(e.getMessage());
      } finally {
        ended = true;
        lost(this, why, PAUSE);
        questions.values().forEach(question -> question.complete(null));
      }
    }

    private void answered(Answer answer) {
      CompletableFuture<@Nullable Answer> question = questions.remove(answer.message.id());
      if (question == null || !question.complete(answer)) {
        // The request has timed out.
        boolean hasCopy = answer.file != null;
        answer.drop();
        if (hasCopy) {
          release(answer.message.handle());
        }
      }
    }

    /** Sends a request and waits for the answer; null after {@link #LIMIT}. */
    @Nullable Answer ask(Kind kind, long handle, long bytes, int descriptor) {
      long id = lastId.incrementAndGet();
      CompletableFuture<@Nullable Answer> question = new CompletableFuture<>();
      questions.put(id, question);
      try {
        if (ended) {
          return null;
        }
        socket.send(new CacheMessage(kind, id, handle, bytes).encoded(), descriptor);
        return question.get(LIMIT.toNanos(), TimeUnit.NANOSECONDS);
      } catch (FsException e) {
        lost(this, String.valueOf(e.getMessage()), PAUSE);
      } catch (TimeoutException e) {
        lost(this, "it does not answer", LONG_PAUSE);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      } catch (ExecutionException e) {
        throw new IllegalStateException(e);
      } finally {
        questions.remove(id);
      }
      socket.shutDown();
      // The answer may have arrived just now.
      if (!question.complete(null)) {
        Answer late = question.join();
        if (late != null) {
          late.drop();
        }
      }
      return null;
    }

    void release(long handle) {
      if (!ended) {
        try {
          socket.send(
              new CacheMessage(Kind.RELEASE, lastId.incrementAndGet(), handle, 0).encoded(),
              PassedFile.NONE);
        } catch (FsException e) {
          socket.shutDown(); // the cache then releases all handles
        }
      }
    }
  }

  static final class OpenCopy implements LentFile {
    private final Connection connection;
    private final long handle;
    private final PassedFile file;
    private volatile boolean isWhole;

    private volatile long reached;

    private OpenCopy(Connection connection, CacheMessage answer, PassedFile file) {
      this.connection = connection;
      this.handle = answer.handle();
      this.file = file;
      take(answer);
    }

    private void take(CacheMessage answer) {
      isWhole = answer.kind() == Kind.WHOLE;
      reached = answer.bytes();
    }

    PassedFile file() {
      return file;
    }

    boolean isWhole() {
      return isWhole;
    }

    @Override
    public boolean isCopy() {
      return true;
    }

    @Override
    public int descriptor() {
      return file.descriptor();
    }

    @Override
    public void closeDescriptor() {
      file.close();
    }

    /**
     * Whether the copy has its first {@code wanted} bytes; waits briefly for them.
     *
     * @return null if the copy has failed
     */
    @Nullable Boolean has(long wanted) {
      if (isWhole || wanted <= reached) {
        return true;
      }
      Answer answer = connection.ended ? null : connection.ask(Kind.AWAIT, handle, wanted, -1);
      if (answer == null || answer.message.kind() == Kind.REFUSED) {
        return null;
      }
      synchronized (this) {
        if (!isWhole && answer.message.bytes() >= reached) {
          take(answer.message);
        }
      }
      return isWhole || wanted <= reached;
    }

    @Override
    public void close() {
      file.close();
      connection.release(handle);
    }
  }
}
