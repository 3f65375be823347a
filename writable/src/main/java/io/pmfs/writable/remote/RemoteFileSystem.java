package io.pmfs.writable.remote;

import io.pmfs.tier.DaemonThread;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.tier.ReadResult;
import io.pmfs.tier.ReadSink;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.NodeAway;
import io.pmfs.writable.NodeFiles;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Entry;
import io.pmfs.writable.WritableFileSystem.EntryConsumer;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A writable mount that another node owns: each operation is a request to that node. While it does
 * not answer, operations wait as long as its daemon may take to be replaced, and fail with EIO
 * after that. Safe for use by many threads.
 */
public final class RemoteFileSystem implements InvocationHandler {
  private static final Logger log = LoggerFactory.getLogger(RemoteFileSystem.class);

  /**
   * Longer than a daemon takes to be replaced, and shorter than the supervisor of this node lets a
   * daemon be silent: a change that waits locks its directory, and with the root all paths.
   */
  private static final long PATIENCE_MILLIS = 12_000;

  private static final long LOOK_MILLIS = 1000;

  /** Data files that are of no use any more are asked for at every third look. */
  private static final int TIDY_LOOKS = 3;

  /** A wait for the source is asked for again after this long, lest it outlives this node. */
  private static final long DRAIN_MILLIS = 20_000;

  private static final int KEPT_LATER = 100_000;

  /** What commands, and the first look at the root, wait for an owner that does not answer. */
  private static final long COMMAND_MILLIS = 2000;

  private final Owner owner;
  private final Remembered remembered;
  private final KeptContent kept;
  private final SourceReads sourceReads;
  private final BlockingQueue<Closing> later = new LinkedBlockingQueue<>(KEPT_LATER);
  private final Thread looking;
  private volatile boolean closed;
  private volatile @Nullable String failure;
  private volatile @Nullable String sourceFailure; // of the owner's source
  private volatile @Nullable Node root;
  private volatile DrainStatus status = DrainStatus.NONE;

  /** What the owner is told when there is time: a last close, or a forgotten inode if 0. */
  private record Closing(long inode, long handle) {}

  /**
   * This node.
   *
   * @param member its id, which persists
   * @param name for messages on other nodes
   * @param session differs for each session of the kernel
   * @param source the directory that is mounted, as this node sees it
   * @param calls on the source
   * @param files what it keeps
   */
  public record Self(
      UUID member, String name, UUID session, Path source, OutputCalls calls, NodeFiles files) {}

  private RemoteFileSystem(OwnerLink link, Self self, long patienceMillis) {
    this.remembered = new Remembered(self.calls(), self.source());
    this.owner = new Owner(link, self, patienceMillis);
    this.kept = new KeptContent(self.files(), owner);
    this.sourceReads = new SourceReads(self.calls(), self.source());
    this.looking = DaemonThread.lasting("pmfs-owner", this::look);
  }

  /**
   * Joins the owner.
   *
   * @param isResumed whether a former process served the same session: then the owner may be away
   * @param patience how long the owner may take to answer for the first time
   * @throws FsException if the owner cannot be reached, or has another version of pmfs
   */
  public static WritableFileSystem join(
      OwnerLink link, Self self, boolean isResumed, Duration patience) throws FsException {
    return join(link, self, isResumed, patience, PATIENCE_MILLIS);
  }

  /** With another time until operations fail, for tests. */
  public static WritableFileSystem join(
      OwnerLink link, Self self, boolean isResumed, Duration patience, long patienceMillis)
      throws FsException {
    RemoteFileSystem remote = new RemoteFileSystem(link, self, patienceMillis);
    if (!isResumed) {
      remote.status =
          (DrainStatus)
              Objects.requireNonNull(remote.owner.askFor(patience.toMillis(), "drainStatus"));
    }
    remote.looking.start();
    return (WritableFileSystem)
        Proxy.newProxyInstance(
            RemoteFileSystem.class.getClassLoader(),
            new Class<?>[] {WritableFileSystem.class},
            remote);
  }

  @Override
  public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] given)
      throws FsException, InterruptedException {
    Object[] arguments = given == null ? new Object[0] : given;
    try {
      Object result = perform(proxy, method, arguments);
      remembered.saw(method.getName(), arguments, result);
      sourceReads.saw(method.getName(), arguments, result);
      return result;
    } catch (FsException e) {
      sourceReads.saw(method.getName(), arguments, null);
      if (e.errno() != Errno.EIO || !owner.isLost()) {
        throw e;
      }
      return remembered.answer(method.getName(), arguments, e);
    }
  }

  private @Nullable Object perform(Object proxy, Method method, Object[] arguments)
      throws FsException, InterruptedException {
    switch (method.getName()) {
      case "read" -> {
        read(method, arguments);
        return null;
      }
      case "create" -> {
        Object answer = ask(kept.hasRoom() ? "createHere" : "create", arguments);
        return opened(answer, true, -1, (Caller) arguments[4]);
      }
      case "open" -> {
        boolean empties = ((int) arguments[1] & OutputCalls.O_TRUNC) != 0;
        String name = empties && !kept.hasRoom() ? "open" : "openHere";
        long changes = sourceReads.changesOf((long) arguments[0]);
        return opened(ask(name, arguments), empties, changes, (Caller) arguments[2]);
      }
      case "flush" -> {
        return kept.isUntouched((long) arguments[1]) ? null : ask(method, arguments);
      }
      case "write" -> {
        return write(method, arguments);
      }
      case "setAttributes" -> {
        return setAttributes(method, arguments);
      }
      case "allocate" -> {
        return kept.allocate(
                (long) arguments[0],
                (long) arguments[1],
                (int) arguments[2],
                (long) arguments[3],
                (long) arguments[4],
                (Caller) arguments[5])
            ? null
            : ask(method, arguments);
      }
      case "list" -> {
        list(method, arguments);
        return null;
      }
      case "release" -> {
        kept.release((long) arguments[1]);
        sourceReads.release((long) arguments[1]);
        tellLater(new Closing((long) arguments[0], (long) arguments[1]));
        return null;
      }
      case "forget" -> {
        tellLater(new Closing((long) arguments[0], 0));
        return null;
      }
      case "drainStatus" -> {
        return status;
      }
      case "stateFailure" -> {
        return failure;
      }
      case "sourceFailure" -> {
        return sourceFailure;
      }
      case "drain" -> {
        return drain((long) arguments[0]);
      }
      case "waiting" -> {
        return waiting(method, arguments);
      }
      case "endSession" -> {
        tellAll();
        ask("endSession");
        return null;
      }
      case "close" -> {
        closed = true;
        owner.close();
        looking.interrupt();
        kept.close();
        sourceReads.close();
        return null;
      }
      case "toString" -> {
        return "the writable mount of " + owner.name();
      }
      case "hashCode" -> {
        return System.identityHashCode(proxy);
      }
      case "equals" -> {
        return proxy == arguments[0];
      }
      case "attributes" -> {
        long inode = (long) arguments[0];
        if (inode == WritableFileSystem.ROOT) {
          return root();
        }
        Node written = kept.attributes(inode);
        return written == null ? ask(method, arguments) : written;
      }
      default -> {
        return ask(method, arguments);
      }
    }
  }

  /**
   * The last known while the owner does not answer: each path, the heartbeat's too, begins here.
   */
  private Node root() throws FsException {
    Node known = root;
    try {
      Node now =
          (Node)
              Objects.requireNonNull(
                  known == null
                      ? ask("attributes", WritableFileSystem.ROOT)
                      : owner.askFor(COMMAND_MILLIS, "attributes", WritableFileSystem.ROOT));
      root = now;
      return now;
    } catch (FsException e) {
      if (known == null) {
        throw e;
      }
      return known;
    }
  }

  // ---- content that this node keeps

  private Opened opened(@Nullable Object answer, boolean begins, long changes, Caller caller)
      throws FsException {
    Opened opened = (Opened) Objects.requireNonNull(answer);
    try {
      kept.opened(opened, begins);
      sourceReads.opened(opened, changes, caller);
      return opened;
    } catch (FsException e) {
      tellLater(new Closing(opened.node().inode(), opened.handle()));
      throw e;
    }
  }

  private @Nullable Object write(Method method, Object[] arguments) throws FsException {
    ByteBuffer bytes = (ByteBuffer) arguments[3];
    int length = bytes.remaining();
    boolean isMade =
        kept.write(
            (long) arguments[0],
            (long) arguments[1],
            (long) arguments[2],
            bytes,
            (boolean) arguments[4],
            (Caller) arguments[6]);
    return isMade ? length : ask(method, arguments);
  }

  private @Nullable Object setAttributes(Method method, Object[] arguments) throws FsException {
    long inode = (long) arguments[0];
    NewAttributes wanted = (NewAttributes) arguments[1];
    NewAttributes left = kept.truncate(inode, wanted, (Caller) arguments[2]);
    boolean isAll =
        left.size() == null
            && left.mode() == null
            && left.uid() == null
            && left.gid() == null
            && left.accessTime() == null
            && left.modificationTime() == null;
    return isAll && wanted.size() != null
        ? ask("attributes", inode)
        : ask(method, new Object[] {inode, left, arguments[2]});
  }

  // ---- operations with consumers

  private void read(Method method, Object[] arguments) throws FsException {
    long handle = (long) arguments[1];
    long offset = (long) arguments[2];
    int size = (int) arguments[3];
    ReadSink sink = (ReadSink) arguments[4];
    if (!kept.read(handle, offset, size, sink) && !sourceReads.read(handle, offset, size, sink)) {
      byte[] bytes = (byte[]) Objects.requireNonNull(ask(method, arguments));
      if (bytes.length > size) {
        throw new FsException(Errno.EIO, "the owner has sent more bytes than were asked for");
      }
      pass(bytes, sink);
    }
  }

  private static void pass(byte[] bytes, ReadSink sink) throws FsException {
    ByteBuffer buffer = sink.buffer(bytes.length);
    buffer.position(0).limit(bytes.length);
    buffer.put(bytes).position(0);
    sink.expect(bytes.length);
    if (bytes.length > 0) {
      try {
        sink.accept(new ReadResult.Bytes(buffer));
      } catch (IOException e) {
        throw new FsException(Errno.EIO, "answering a read", e);
      }
    }
  }

  private void list(Method method, Object[] arguments) throws FsException {
    EntryConsumer consumer = (EntryConsumer) arguments[2];
    long position = (long) arguments[1];
    while (true) {
      Object answer = ask(method, new Object[] {arguments[0], position, consumer});
      List<?> entries = (List<?>) Objects.requireNonNull(answer);
      for (Object one : entries) {
        Entry entry = (Entry) one;
        if (!entry.name().isEntry()) {
          throw new FsException(Errno.EIO, "the owner has sent a name that is none");
        }
        if (!consumer.accept(entry)) {
          return;
        }
        position = entry.position();
      }
      if (entries.size() < Message.LISTED) {
        return;
      }
    }
  }

  /** Waits until what was closed before the call, or a moment later, is at the source. */
  private boolean drain(long timeoutMillis) throws InterruptedException {
    long begin = System.nanoTime();
    try {
      tellAll();
      while (true) {
        long left = timeoutMillis - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
        long part = Math.max(0, Math.min(left, DRAIN_MILLIS));
        long start = System.nanoTime();
        Object answer = owner.askFor(COMMAND_MILLIS, "drain", part);
        boolean isDone = (boolean) Objects.requireNonNull(answer);
        boolean isOver = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start) >= part;
        if (isDone || !isOver || part == left) {
          refreshStatus();
          return isDone;
        }
      }
    } catch (FsException e) {
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
      log.warn("waiting for the source: {}", e.getMessage());
      refreshStatus();
      return false;
    }
  }

  private Object waiting(Method method, Object[] arguments) {
    try {
      return Objects.requireNonNull(owner.askFor(COMMAND_MILLIS, method.getName(), arguments));
    } catch (FsException e) {
      return List.of();
    }
  }

  // ---- what the owner is told later

  /**
   * No program waits for it. A close is told at once if that is possible: until then, the kernel
   * asks the next daemon for the same. Everything else is told soon.
   */
  private void tellLater(Closing closing) {
    if (Remembered.isOwn(closing.handle())) {
      return;
    }
    if (closing.handle() != 0) {
      try {
        ask("release", closing.inode(), closing.handle());
        return;
      } catch (FsException e) {
        log.debug("closing inode {}: {}", closing.inode(), e.getMessage());
      }
    }
    if (!later.offer(closing)) {
      log.debug("inode {} is closed by the end of the session", closing.inode());
    }
  }

  private void tellAll() throws FsException {
    while (true) {
      Closing next = later.peek();
      if (next == null) {
        return;
      }
      if (next.handle() != 0) {
        ask("release", next.inode(), next.handle());
        later.remove(next);
      } else {
        List<Closing> forgotten =
            later.stream().takeWhile(one -> one.handle() == 0).limit(Message.LISTED).toList();
        byte[] body = Message.numbers(forgotten.stream().map(Closing::inode).toList());
        owner.ask("forget", body, void.class);
        forgotten.forEach(later::remove);
      }
    }
  }

  private void look() {
    int looks = 0;
    while (!closed) {
      try {
        Thread.sleep(LOOK_MILLIS);
        refreshStatus();
        if (!owner.isLost()) {
          tellAll();
          looks++;
          if (looks % TIDY_LOOKS == 0) {
            kept.tidy();
          }
        }
      } catch (FsException e) {
        log.debug("{}", e.getMessage());
      } catch (InterruptedException e) {
        return;
      }
    }
  }

  private void refreshStatus() {
    try {
      DrainStatus owners =
          (DrainStatus) Objects.requireNonNull(owner.askFor(COMMAND_MILLIS, "drainStatus"));
      status = owners.withLocalBytes(kept.bytes());
      failure = (String) owner.askFor(COMMAND_MILLIS, "stateFailure");
      sourceFailure = (String) owner.askFor(COMMAND_MILLIS, "sourceFailure");
    } catch (FsException e) {
      // Whether the state of an owner is recorded that does not answer is not known.
      DrainStatus last = status.withLocalBytes(kept.bytes());
      failure = e.getCause() instanceof NodeAway ? null : e.getMessage();
      sourceFailure = null;
      status = e.getCause() instanceof NodeAway owner ? last.without(owner) : last;
    }
  }

  // ---- asking

  private @Nullable Object ask(String name, Object... arguments) throws FsException {
    return owner.ask(name, arguments);
  }

  private @Nullable Object ask(Method method, Object[] arguments) throws FsException {
    return owner.ask(method.getName(), arguments);
  }
}
