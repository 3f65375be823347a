package io.pmfs.cache;

import io.pmfs.cache.CacheMessage.Kind;
import io.pmfs.cache.CacheMessage.Refusal;
import io.pmfs.cache.SharedCopies.Present;
import io.pmfs.cache.SharedCopy.State;
import io.pmfs.fuse.system.DescriptorSocket;
import io.pmfs.fuse.system.PassedFile;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceStatus;
import io.pmfs.table.StateException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One connection to the cache; the kernel identifies its user. Messages are not trusted: the passed
 * open file proves what the user may read, and the kernel identifies that file. A malformed message
 * ends the connection.
 */
final class Session {
  private static final Logger log = LoggerFactory.getLogger(Session.class);

  /** Copies of an earlier run up to this size are verified before the answer, larger ones later. */
  private static final long COMPARED_AT_ONCE_BYTES = 1 << 20;

  /** A reader further ahead of a growing copy is sent to the source. */
  private static final long AHEAD_BYTES = 8 << 20;

  private final CacheService service;
  private final DescriptorSocket socket;
  private final int user;
  private final Map<Long, SharedCopy> handles = new HashMap<>(); // GUARDED_BY(this)
  private final List<Question> questions = new ArrayList<>(); // GUARDED_BY(this)
  private long lastHandle; // GUARDED_BY(this)
  private volatile boolean isMount = true;
  private boolean ended; // GUARDED_BY(this)

  Session(CacheService service, DescriptorSocket socket, int user) {
    this.service = service;
    this.socket = socket;
    this.user = user;
  }

  int user() {
    return user;
  }

  /** Whether the client is a mount, not a command that fetches a report. */
  boolean isMount() {
    return isMount;
  }

  /** Answers until the client disconnects. */
  void run() {
    try (socket) {
      DescriptorSocket.Message message;
      while ((message = socket.receive()) != null) {
        PassedFile file = message.file();
        CacheMessage request = CacheMessage.parse(message.bytes());
        if (request == null || !isRight(request, file)) {
          if (file != null) {
            file.close();
          }
          log.info("user {} sent a malformed message; closing the connection", user);
          return;
        }
        handle(request, file);
      }
    } catch (FsException e) {
      log.debug("connection of user {} failed: {}", user, e.getMessage());
    } finally {
      end();
    }
  }

  private static boolean isRight(CacheMessage request, @Nullable PassedFile file) {
    return switch (request.kind()) {
      case ASK -> file != null;
      case AWAIT, RELEASE, STATUS -> file == null;
      default -> false;
    };
  }

  private void handle(CacheMessage request, @Nullable PassedFile file) {
    switch (request.kind()) {
      case ASK -> {
        if (file != null) {
          ask(request, file);
        }
      }
      case AWAIT -> {
        SharedCopy copy = held(request.handle());
        if (copy == null) {
          refuse(request.id(), Refusal.FAILED);
        } else {
          answerWhenReached(new Question(request, request.handle(), copy, false));
        }
      }
      case RELEASE -> release(request.handle());
      case STATUS -> {
        isMount = false;
        String report = service.report(user).toJson();
        send(new CacheMessage(Kind.REPORT, request.id(), 0, 0, report), null);
      }
      default -> throw new IllegalStateException(request.kind().name());
    }
  }

  private synchronized @Nullable SharedCopy held(long handle) {
    return handles.get(handle);
  }

  private void ask(CacheMessage request, PassedFile file) {
    boolean isTaken = false;
    try {
      CopyKey key = key(file);
      if (key == null) {
        refuse(request.id(), service.isListed(file.device()) ? Refusal.UNFIT : Refusal.NOT_LISTED);
      } else if (isOverLimit()) {
        refuse(request.id(), Refusal.LIMIT);
      } else {
        isTaken = ask(request, key, file);
      }
    } catch (FsException e) {
      refuse(request.id(), Refusal.FAILED);
    } catch (StateException e) {
      log.warn("{}", e.getMessage());
      refuse(request.id(), Refusal.FAILED);
    } finally {
      if (!isTaken) {
        file.close();
      }
    }
  }

  /** The key of the file's content; null if the file may not be copied. */
  private @Nullable CopyKey key(PassedFile file) throws FsException {
    // The device first, because other calls may block on a file system that is not listed.
    Long fileSystem = service.fileSystem(file.device());
    if (fileSystem == null || !file.isReadable()) {
      return null;
    }
    SourceStatus status = file.status();
    return isFit(status, file.isServedByProgram()) ? CopyKey.of(fileSystem, status) : null;
  }

  /**
   * Whether a key identifies this file forever. A program that serves a file system may reuse inode
   * numbers; with change times in full seconds or none at all, two files could then have equal
   * keys.
   */
  static boolean isFit(SourceStatus status, boolean isServedByProgram) {
    Attributes attributes = status.attributes();
    Instant changed = attributes.changeTime();
    return attributes.type() == FileType.REGULAR
        && attributes.size() > 0
        && !(isServedByProgram && changed.equals(changed.truncatedTo(ChronoUnit.SECONDS)));
  }

  private synchronized boolean isOverLimit() {
    return handles.size() >= service.limits().handles();
  }

  private boolean ask(CacheMessage request, CopyKey key, PassedFile file) {
    SharedCopies copies = service.copies();
    HeldCopy held = copies.make(key, user);
    SharedCopy made = held.copy();
    if (made == null) {
      Refusal why = held.why();
      refuse(request.id(), why == null ? Refusal.NO_ROOM : why);
      return false;
    }
    if (!held.isNew()) {
      found(request, made);
      return false;
    }
    Copier.Place place = service.copy(made, file, user);
    switch (place) {
      case AT_ONCE -> answer(request, made);
      case WAITS -> {
        copies.queued(made);
        copies.release(made, user);
        refuse(request.id(), Refusal.BUSY);
      }
      case REFUSED -> {
        copies.fail(made).forEach(SharedCopy.Waiting::answer);
        copies.release(made, user);
        refuse(request.id(), Refusal.LIMIT);
      }
    }
    return place != Copier.Place.REFUSED;
  }

  /** Answers with an existing copy, which is held. */
  private void found(CacheMessage request, SharedCopy copy) {
    SharedCopies copies = service.copies();
    if (copies.isQueued(copy)) {
      copies.release(copy, user);
      refuse(request.id(), Refusal.BUSY);
    } else if (!copies.isFound(copy)) {
      answer(request, copy);
    } else if (copy.key.size() <= COMPARED_AT_ONCE_BYTES) {
      copies.compare(copy, bytes -> {});
      answer(request, copy);
    } else {
      if (copies.beginComparison(copy)) {
        // The comparison takes over the hold.
        service.compare(copy, user);
      } else {
        copies.release(copy, user);
      }
      refuse(request.id(), Refusal.BUSY);
    }
  }

  private void answer(CacheMessage request, SharedCopy copy) {
    long handle;
    synchronized (this) {
      if (ended) {
        service.copies().release(copy, user);
        return;
      }
      handle = ++lastHandle;
      handles.put(handle, copy);
    }
    answerWhenReached(new Question(request, handle, copy, true));
  }

  private void answerWhenReached(Question question) {
    synchronized (this) {
      if (questions.size() >= service.limits().questions()) {
        question = question.now();
      } else {
        questions.add(question);
      }
    }
    if (question.isFarAhead() || !service.copies().await(question.copy, question)) {
      question.answer();
    }
  }

  private void release(long handle) {
    SharedCopy copy;
    synchronized (this) {
      copy = handles.remove(handle);
    }
    if (copy != null) {
      service.copies().release(copy, user);
    }
  }

  private void refuse(long id, Refusal why) {
    service.countRefused();
    send(new CacheMessage(Kind.REFUSED, id, 0, why.number()), null);
  }

  /** Never blocks: a client that does not receive its answers is disconnected. */
  private void send(CacheMessage answer, @Nullable PassedFile file) {
    try {
      socket.offer(answer.encoded(), file);
    } catch (FsException e) {
      socket.shutDown();
    }
  }

  /** Answers the requests that have waited since before this time. */
  void answerOlderThan(long nanoTime) {
    List<Question> old;
    synchronized (this) {
      old = questions.stream().filter(one -> one.since - nanoTime < 0).toList();
    }
    for (Question question : old) {
      if (service.copies().takeBack(question.copy, question)) {
        question.answer();
      }
    }
  }

  /** Closes a session that was never run. */
  void close() {
    socket.close();
  }

  void shutDown() {
    socket.shutDown();
  }

  private void end() {
    List<SharedCopy> held;
    synchronized (this) {
      ended = true;
      held = List.copyOf(handles.values());
      handles.clear();
      questions.forEach(question -> service.copies().takeBack(question.copy, question));
      questions.clear();
    }
    held.forEach(copy -> service.copies().release(copy, user));
  }

  /** A request for a copy that this connection holds. */
  private final class Question implements SharedCopy.Waiting {
    private final long id;
    private final long handle;
    private final long wanted;
    private final SharedCopy copy;

    /** Whether the answer carries the copy's open file. */
    private final boolean open;

    private final long since = System.nanoTime();

    Question(CacheMessage request, long handle, SharedCopy copy, boolean open) {
      this(request.id(), handle, Math.min(request.bytes(), copy.key.size()), copy, open);
    }

    private Question(long id, long handle, long wanted, SharedCopy copy, boolean open) {
      this.id = id;
      this.handle = handle;
      this.wanted = wanted;
      this.copy = copy;
      this.open = open;
    }

    /** A request for what the copy has now. */
    Question now() {
      return new Question(id, handle, 0, copy, open);
    }

    boolean isFarAhead() {
      return wanted - service.copies().reachedBytes(copy) > AHEAD_BYTES;
    }

    @Override
    public long wanted() {
      return wanted;
    }

    @Override
    public void answer() {
      synchronized (Session.this) {
        questions.remove(this);
      }
      try (Present present = service.copies().present(copy, open)) {
        if (present.state() == State.GROWING || present.state() == State.WHOLE) {
          Kind kind = present.state() == State.WHOLE ? Kind.WHOLE : Kind.GROWING;
          long bytes = kind == Kind.WHOLE ? copy.key.size() : present.reached();
          service.countAnswered();
          send(new CacheMessage(kind, id, handle, bytes), present.file());
          return;
        }
      } catch (FsException e) {
        log.warn("cannot open a copy: {}", e.getMessage());
        if (e.errno() == Errno.ENOENT) {
          service.copies().fail(copy).forEach(SharedCopy.Waiting::answer);
        }
      }
      if (open) {
        release(handle);
      }
      refuse(id, Refusal.FAILED);
    }
  }
}
