package io.pmfs.writable.remote;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.tier.DaemonThread;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.tier.ReadResult;
import io.pmfs.tier.ReadSink;
import io.pmfs.writable.CopyBuffers;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Entry;
import io.pmfs.writable.WritableFileSystem.EntryConsumer;
import io.pmfs.writable.mount.WritableMount;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers the other nodes of a writable mount from this node's, which owns all names. A change that
 * a node asks for again, because it had no answer, is made once. Safe for use by many threads.
 */
public final class OwnerServer {
  private static final Logger log = LoggerFactory.getLogger(OwnerServer.class);

  /** Longer than a daemon takes to be replaced. */
  private static final long AWAY_NANOS = TimeUnit.SECONDS.toNanos(30);

  /** Requests that change nothing and may wait for the source. */
  private static final Set<String> WAITS =
      Set.of(
          "drain",
          "waiting",
          "drainStatus",
          "stateFailure",
          "sourceFailure",
          "fsync",
          "fsyncDirectory");

  /** A request with a longer wait or copy is answered before it is done, and sent again. */
  private static final long MOST_WAIT_MILLIS = 60_000;

  private static final long MOST_COPIED = 256 << 20;

  /** Nodes at the same time, many more than a cluster has. */
  private static final int MOST_NODES = 4096;

  private static final int ANSWERS = 16_384;
  private static final Duration KEPT = Duration.ofMinutes(5);

  private final WritableMount mount;
  private final LongSupplier nanoTime;
  private final Cache<Long, CompletableFuture<byte[]>> answers =
      CacheBuilder.newBuilder().maximumSize(ANSWERS).expireAfterWrite(KEPT).build();
  private final Map<UUID, Joined> joined = new HashMap<>(); // GUARDED_BY(this)

  /** Former sessions of nodes that are here again; what they had open is still to be closed. */
  private final Set<Integer> former = new HashSet<>(); // GUARDED_BY(this)

  /** A node that is here. */
  private static final class Joined {
    final int node;

    /** Held shared while a request is made, and exclusively when an era ends. */
    final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();

    volatile long era;

    /** Since when it is away; 0 if it is present. */
    long awaySince; // GUARDED_BY(OwnerServer.this)

    Joined(int node, long era) {
      this.node = node;
      this.era = era;
    }
  }

  public OwnerServer(WritableMount mount) {
    this(mount, System::nanoTime);
  }

  /** With another clock, for tests. */
  public OwnerServer(WritableMount mount, LongSupplier nanoTime) {
    this.mount = mount;
    this.nanoTime = nanoTime;
  }

  /**
   * Answers a request.
   *
   * @throws IllegalArgumentException with a one-line message, if it is malformed
   */
  public byte[] answer(String name, byte[] body) {
    try {
      Message.Request request = new Message.Request(body);
      if (!request.isOurVersion) {
        return Message.answer(Message.Kind.OTHER_VERSION);
      }
      if (name.equals("join")) {
        return join(request.id(), request.id(), request.name(), request.era);
      }
      Joined asker = find(request.node);
      if (asker == null) {
        return Message.answer(Message.Kind.NOT_JOINED);
      }
      return WAITS.contains(name) ? answer(name, request) : answerInTime(asker, name, request);
    } catch (IOException e) {
      throw new IllegalArgumentException(name + ": " + e.getMessage(), e);
    }
  }

  /**
   * A request that a node has given up may arrive late: it must not be made among those that the
   * node sent afterwards.
   */
  private byte[] answerInTime(Joined asker, String name, Message.Request request)
      throws IOException {
    if (request.era > asker.era) {
      asker.lock.writeLock().lock();
      try {
        asker.era = Math.max(asker.era, request.era);
      } finally {
        asker.lock.writeLock().unlock();
      }
    }
    asker.lock.readLock().lock();
    try {
      if (request.era < asker.era) {
        return Message.answer(Message.Kind.GIVEN_UP);
      }
      return switch (name) {
        case "endSession" -> ended(request.node);
        case "forget" -> forgotten(request.numbers());
        default -> answer(name, request);
      };
    } finally {
      asker.lock.readLock().unlock();
    }
  }

  // ---- who is here

  private byte[] join(UUID member, UUID session, String name, long era) {
    synchronized (this) {
      if (joined.size() >= MOST_NODES && !joined.containsKey(member)) {
        return Message.failure(new FsException(Errno.EAGAIN, MOST_NODES + " nodes have joined"));
      }
    }
    try {
      int node = mount.join(session, member, name);
      Joined before;
      synchronized (this) {
        before = joined.put(member, new Joined(node, era));
        if (before != null && before.node != node) {
          former.add(before.node);
        }
      }
      mount.isBack();
      if (before != null && before.node != node) {
        leaveSoon();
      }
      return Message.answer(Message.Joined.class, new Message.Joined(node, mount.id()));
    } catch (FsException e) {
      return Message.failure(e);
    }
  }

  /** It may have to ask the node, which waits for the answer to another request. */
  private void leaveSoon() {
    try {
      DaemonThread.start("pmfs-node-left", this::leaveFormer);
    } catch (OutOfMemoryError e) {
      log.debug("the next look at the members closes what a node left: {}", e.toString());
    }
  }

  private void leaveFormer() {
    for (Integer node = nextFormer(); node != null; node = nextFormer()) {
      try {
        mount.leave(node);
      } catch (RuntimeException | Error e) {
        addFormer(node);
        throw e;
      }
    }
  }

  private synchronized @Nullable Integer nextFormer() {
    Iterator<Integer> left = former.iterator();
    Integer node = left.hasNext() ? left.next() : null;
    former.remove(node);
    return node;
  }

  private synchronized void addFormer(int node) {
    former.add(node);
  }

  private synchronized @Nullable Joined find(int node) {
    return joined.values().stream().filter(one -> one.node == node).findFirst().orElse(null);
  }

  /** The nodes that have joined. */
  public synchronized int count() {
    return joined.size();
  }

  /** The members of the cluster at present: what the others had open is closed after a while. */
  public void present(Set<UUID> members) {
    List<Integer> gone = new ArrayList<>();
    boolean isBack = false;
    long now = nanoTime.getAsLong();
    synchronized (this) {
      for (Map.Entry<UUID, Joined> entry : joined.entrySet()) {
        Joined one = entry.getValue();
        if (members.contains(entry.getKey())) {
          isBack |= one.awaySince != 0;
          one.awaySince = 0;
        } else if (one.awaySince == 0) {
          one.awaySince = now == 0 ? 1 : now;
        } else if (now - one.awaySince > AWAY_NANOS) {
          gone.add(one.node);
        }
      }
    }
    leaveFormer();
    for (int node : gone) {
      ended(node);
    }
    if (isBack) {
      mount.isBack();
    }
  }

  private byte[] ended(int node) {
    mount.leave(node);
    synchronized (this) {
      joined.values().removeIf(one -> one.node == node);
    }
    return Message.answer(void.class, null);
  }

  private byte[] forgotten(List<Long> inodes) {
    for (long inode : inodes) {
      mount.forget(inode, 1);
    }
    return Message.answer(void.class, null);
  }

  // ---- requests to the file system

  private byte[] answer(String name, Message.Request request) throws IOException {
    Method method = Message.TO_OWNER.get(name);
    if (method == null || name.equals("close")) {
      throw new IllegalArgumentException(name + ": no such request");
    }
    @Nullable Object[] arguments = request.arguments(method);
    switch (name) {
      case "drain" -> arguments[0] = Math.min((long) arguments[0], MOST_WAIT_MILLIS);
      case "copyRange" -> arguments[6] = Math.min((long) arguments[6], MOST_COPIED);
      case "waiting" -> arguments[0] = Math.min((int) arguments[0], Message.LISTED);
      default -> {}
    }
    long unique = 0;
    for (int i = 0; i < arguments.length; i++) {
      if (arguments[i] instanceof Caller caller) {
        Caller there = caller.on(request.node);
        arguments[i] = there;
        unique = there.unique();
      }
    }
    return unique == 0 ? perform(method, arguments) : performOnce(unique, method, arguments);
  }

  /** The same answer for a request that a node repeats, also while it is being answered. */
  private byte[] performOnce(long unique, Method method, @Nullable Object[] arguments) {
    CompletableFuture<byte[]> own = new CompletableFuture<>();
    CompletableFuture<byte[]> before = answers.asMap().putIfAbsent(unique, own);
    if (before != null) {
      return before.join();
    }
    try {
      own.complete(perform(method, arguments));
    } finally {
      own.completeExceptionally(new IllegalStateException("the request failed"));
    }
    return own.join();
  }

  private byte[] perform(Method method, @Nullable Object[] arguments) {
    Collected collected = new Collected();
    Class<?>[] types = method.getParameterTypes();
    try {
      for (int i = 0; i < types.length; i++) {
        if (types[i] == EntryConsumer.class || types[i] == ReadSink.class) {
          arguments[i] = collected;
        } else if (arguments[i] instanceof ByteBuffer bytes) {
          arguments[i] = collected.direct(bytes);
        } else if (arguments[i] == null && !isNullable(method, i)) {
          throw new IllegalArgumentException(method.getName() + ": a missing argument");
        }
      }
      Object result = method.invoke(mount, arguments);
      List<Class<?>> all = List.of(types);
      Object sent =
          all.contains(EntryConsumer.class)
              ? collected.entries
              : all.contains(ReadSink.class) ? collected.bytes() : result;
      return Message.answer(Message.result(method), sent);
    } catch (InvocationTargetException e) {
      return failed(method, e.getCause());
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    } finally {
      collected.end();
    }
  }

  private static boolean isNullable(Method method, int parameter) {
    return method.getAnnotatedParameterTypes()[parameter].isAnnotationPresent(Nullable.class);
  }

  private static byte[] failed(Method method, @Nullable Throwable cause) {
    if (cause instanceof FsException failure) {
      return Message.failure(failure);
    }
    if (cause instanceof InterruptedException) {
      Thread.currentThread().interrupt();
    } else {
      log.error("cannot answer a node's {}", method.getName(), cause);
    }
    return Message.failure(new FsException(Errno.EIO, "the owner failed; see its log"));
  }

  /** What a listing or a read gives. */
  private static final class Collected implements ReadSink, EntryConsumer {
    final List<Entry> entries = new ArrayList<>();
    private final List<byte[]> pieces = new ArrayList<>();
    private @Nullable ByteBuffer buffer;

    @Override
    public boolean accept(Entry entry) {
      return entries.size() < Message.LISTED && entries.add(entry);
    }

    @Override
    public ByteBuffer buffer(int size) {
      ByteBuffer taken = buffer;
      if (taken == null) {
        taken = CopyBuffers.take();
        buffer = taken;
      }
      return taken.clear();
    }

    @Override
    public void accept(ReadResult piece) throws IOException {
      byte[] bytes = new byte[piece.size()];
      piece.copyTo(ByteBuffer.wrap(bytes));
      pieces.add(bytes);
    }

    /** The same bytes where system calls take them. */
    ByteBuffer direct(ByteBuffer bytes) {
      if (bytes.remaining() > CopyBuffers.BYTES) {
        throw new IllegalArgumentException("more than " + CopyBuffers.BYTES + " bytes");
      }
      return buffer(bytes.remaining()).put(bytes).flip();
    }

    void end() {
      if (buffer != null) {
        CopyBuffers.give(buffer);
      }
    }

    byte[] bytes() {
      if (pieces.size() == 1) {
        return pieces.get(0);
      }
      ByteBuffer all = ByteBuffer.allocate(pieces.stream().mapToInt(one -> one.length).sum());
      pieces.forEach(all::put);
      return all.array();
    }
  }
}
