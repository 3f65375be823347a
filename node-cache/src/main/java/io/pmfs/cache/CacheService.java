package io.pmfs.cache;

import io.pmfs.fuse.system.DescriptorSocket;
import io.pmfs.fuse.system.PassedFile;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.FsException;
import io.pmfs.posix.Troubles;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.InstantSource;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The cache of a node: serves the mounts of all users copies of the files that they have open at
 * the source. Its account needs no permissions at the source.
 */
@SuppressWarnings("FutureReturnValueIgnored") // the repeated task does not throw
public final class CacheService implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(CacheService.class);

  private static final int BACKLOG = 256;

  /**
   * Holds about 100 unreceived answers, more than a mount has requests in flight. Each may carry a
   * descriptor; those of all connections stay below the limit of the process.
   */
  private static final int QUEUE_BYTES = 64 << 10;

  /** How long a reader waits for a growing copy before it reads the source. */
  private static final Duration PATIENCE = Duration.ofMillis(500);

  private static final Duration LOOK = Duration.ofMillis(100);
  private static final Duration LOOK_AGAIN = Duration.ofSeconds(1);

  /** A thread whose source has not answered for so long is replaced. */
  private static final Duration HANGS = Duration.ofSeconds(10);

  private static final Duration AFTER_ERROR = Duration.ofSeconds(1);

  private final Settings settings;
  private final SourceFileSystems fileSystems;
  private final SharedCopies copies;
  private final Copier copier;

  private final DescriptorSocket listening;
  private final ScheduledExecutorService timer;
  private final Set<Session> sessions = new HashSet<>(); // GUARDED_BY(this)
  private final LongAdder answered = new LongAdder();
  private final LongAdder refused = new LongAdder();
  private final LongAdder copiedBytes = new LongAdder();
  private final LongAdder failed = new LongAdder();
  private volatile boolean closed;

  /**
   * Settings of a cache.
   *
   * @param directory holds the copies, and nothing else
   * @param sources a directory on each file system whose files may be copied
   */
  public record Settings(
      Path socket,
      Path directory,
      long capacityBytes,
      Duration evictAfter,
      List<Path> sources,
      Limits limits) {}

  /**
   * Limits on what users can allocate.
   *
   * @param connections of all users
   * @param connectionsOfUser of one user
   * @param questions unanswered requests of one connection
   * @param handles of one connection
   * @param copies that all mounts may have open
   * @param copiesOfUser that one user's mounts may have open
   * @param heldBytes size of the copies that one user's mounts may have open, which cannot be
   *     evicted
   */
  public record Limits(
      int connections,
      int connectionsOfUser,
      int questions,
      int handles,
      int copies,
      int copiesOfUser,
      long heldBytes) {
    public static Limits of(long capacityBytes) {
      return new Limits(512, 128, 128, 8192, 1 << 17, 1 << 15, capacityBytes / 2);
    }
  }

  private CacheService(Settings settings, SharedCopies copies, DescriptorSocket listening) {
    this.settings = settings;
    this.copies = copies;
    this.listening = listening;
    this.fileSystems = new SourceFileSystems(settings.sources());
    this.copier = new Copier(Copier.THREADS);
    this.timer = Executors.newScheduledThreadPool(2, DaemonThread.numbered("patience"));
  }

  /**
   * Opens the copies and the socket, and starts answering.
   *
   * @throws IOException if the directory cannot be used, or another cache uses it or the socket, or
   *     not enough threads can be started
   */
  public static CacheService open(Settings settings, InstantSource clock) throws IOException {
    SharedCopies copies = copies(settings, clock);
    try {
      CacheService service = new CacheService(settings, copies, listen(settings.socket()));
      service.start();
      return service;
    } catch (OutOfMemoryError e) {
      copies.close();
      throw new IOException("not enough threads can be started: " + e.getMessage(), e);
    } catch (IOException | RuntimeException e) {
      copies.close();
      throw e;
    }
  }

  private static SharedCopies copies(Settings settings, InstantSource clock) throws IOException {
    CopyFiles files = new CopyFiles(settings.directory());
    CopyIndex index = null;
    try {
      CacheRules rules =
          new CacheRules(
              files.capacity(settings.capacityBytes()), settings.evictAfter(), settings.limits());
      index = FoundCopies.index(files, FoundCopies.boot());
      return new SharedCopies(files, index, rules, clock);
    } catch (IOException | RuntimeException e) {
      if (index != null) {
        index.close();
      }
      files.close();
      throw e;
    }
  }

  /** Any user may connect: the passed files decide who may read what. */
  private static DescriptorSocket listen(Path socket) throws IOException {
    if (Files.exists(socket)) {
      try {
        DescriptorSocket.connect(socket, PATIENCE).close();
      } catch (FsException e) {
        Files.delete(socket); // of a cache that was killed
      }
      if (Files.exists(socket)) {
        throw new IOException(socket + " is in use by another cache");
      }
    }
    try {
      DescriptorSocket listening = DescriptorSocket.listen(socket, BACKLOG);
      Files.setPosixFilePermissions(socket, PosixFilePermissions.fromString("rw-rw-rw-"));
      return listening;
    } catch (FsException e) {
      throw new IOException(e.getMessage(), e);
    }
  }

  private void start() {
    DaemonThread.lasting("accept", this::accept).start();
    repeat(LOOK, this::answerOldQuestions);
    repeat(LOOK_AGAIN, this::lookAgain);
  }

  private void repeat(Duration pause, Runnable task) {
    timer.scheduleAtFixedRate(
        () -> {
          try {
            task.run();
          } catch (RuntimeException | Error e) {
            log.error("the cache's periodic task failed", e); // a task that throws is not repeated
          }
        },
        pause.toMillis(),
        pause.toMillis(),
        TimeUnit.MILLISECONDS);
  }

  private void lookAgain() {
    copier.replaceHanging(System.nanoTime() - HANGS.toNanos());
    copies.lookAgain();
  }

  private void accept() {
    while (!closed) {
      acceptOne();
    }
    listening.close();
  }

  private void acceptOne() {
    try {
      take(listening.accept(QUEUE_BYTES));
    } catch (FsException e) {
      if (!closed) {
        log.warn("cannot accept a connection: {}", e.getMessage());
        pause();
      }
    }
  }

  private void take(DescriptorSocket socket) throws FsException {
    Session session;
    try {
      session = admitted(socket);
    } catch (FsException | RuntimeException | Error e) {
      socket.close();
      throw e;
    }
    if (session == null) {
      socket.close();
    } else {
      start(session);
    }
  }

  private void start(Session session) {
    try {
      DaemonThread.start("user-" + session.user(), () -> run(session));
    } catch (OutOfMemoryError e) {
      log.warn("cannot start a thread for a connection: {}", e.getMessage());
      session.close();
      synchronized (this) {
        sessions.remove(session);
      }
      pause();
    }
  }

  /** Avoids a busy loop while descriptors or memory are short. */
  private static void pause() {
    try {
      Thread.sleep(AFTER_ERROR.toMillis());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private @Nullable Session admitted(DescriptorSocket socket) throws FsException {
    int user = socket.peerUser();
    synchronized (this) {
      long own = sessions.stream().filter(session -> session.user() == user).count();
      if (sessions.size() >= settings.limits().connections()
          || own >= settings.limits().connectionsOfUser()) {
        return null;
      }
      Session session = new Session(this, socket, user);
      sessions.add(session);
      return session;
    }
  }

  private void run(Session session) {
    try {
      session.run();
    } finally {
      synchronized (this) {
        sessions.remove(session);
      }
    }
  }

  private void answerOldQuestions() {
    long since = System.nanoTime() - PATIENCE.toNanos();
    for (Session session : sessions()) {
      session.answerOlderThan(since);
    }
  }

  private synchronized List<Session> sessions() {
    return List.copyOf(sessions);
  }

  /** The name of the listed file system on a device; null if the device has none. */
  @Nullable Long fileSystem(long device) {
    return fileSystems.name(device);
  }

  boolean isListed(long device) {
    return fileSystem(device) != null;
  }

  SharedCopies copies() {
    return copies;
  }

  Limits limits() {
    return settings.limits();
  }

  /** Copies an open file of the source. Takes the file over unless the work is refused. */
  Copier.Place copy(SharedCopy copy, PassedFile source, int user) {
    return copier.add(user, new Copying(copies, copy, source, copiedBytes, failed));
  }

  /**
   * Verifies a copy's checksum in the background, once a caller has {@link
   * SharedCopies#beginComparison begun} that; takes over one of the user's holds.
   */
  void compare(SharedCopy copy, int user) {
    Copier.Work comparison =
        new Copier.Work() {
          @Override
          public void run(ByteBuffer buffer, LongConsumer progress) {
            if (copies.isFound(copy)) {
              copies.compare(copy, progress);
            }
            drop();
          }

          @Override
          public void drop() {
            copies.endComparison(copy);
            copies.release(copy, user);
          }

          @Override
          public long bytes() {
            return copy.key.size();
          }
        };
    if (copier.add(user, comparison) == Copier.Place.REFUSED) {
      comparison.drop();
    }
  }

  void countAnswered() {
    answered.increment();
  }

  void countRefused() {
    refused.increment();
  }

  /** The report, as this user may see it. */
  CacheReport report(int user) {
    CacheReport all = report();
    return user == 0 ? all : all.only(user);
  }

  public CacheReport report() {
    return new CacheReport(
        copies.room(),
        (int) sessions().stream().filter(Session::isMount).count(),
        copier.running(),
        copier.waiting(),
        answered.sum(),
        refused.sum(),
        copiedBytes.sum(),
        failed.sum(),
        Troubles.recent());
  }

  @Override
  public void close() throws IOException {
    closed = true;
    timer.shutdownNow();
    listening.shutDown();
    Files.deleteIfExists(settings.socket());
    sessions().forEach(Session::shutDown);
    copier.close();
    copies.close();
  }
}
