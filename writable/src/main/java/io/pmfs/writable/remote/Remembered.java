package io.pmfs.writable.remote;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.tier.ReadResult;
import io.pmfs.tier.ReadSink;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * What this node saw of the mount, for a time in which the owner does not answer: names and
 * attributes from memory, content from the source if it has the version that was seen, and the same
 * rights on the whole path. Safe for use by many threads.
 */
final class Remembered {
  private static final int KEPT = 50_000;
  private static final int MAX_DEPTH = 1000;
  private static final int ACCESS_MODE = 3;
  private static final FileName NO_NAME = FileName.of("");

  private final OutputCalls calls;
  private final Path source;
  private final Cache<Name, Long> names = CacheBuilder.newBuilder().maximumSize(KEPT).build();
  private final Cache<Long, Seen> nodes = CacheBuilder.newBuilder().maximumSize(KEPT).build();

  /** Handles that the owner did not give are negative. */
  private final AtomicLong lastHandle = new AtomicLong();

  private record Name(long directory, FileName name) {}

  /** A node and one of its names, null if only the attributes are known. */
  private record Seen(Node node, @Nullable Name name) {}

  Remembered(OutputCalls calls, Path source) {
    this.calls = calls;
    this.source = source;
  }

  // ---- remembering

  /** The owner has answered. */
  void saw(String method, Object[] arguments, @Nullable Object result) {
    switch (method) {
      case "lookup" -> saw(arguments, (Node) result);
      case "mkdir", "mknod", "symlink" -> saw(arguments, (Node) result);
      case "create" -> saw(arguments, result == null ? null : ((Opened) result).node());
      case "unlink", "rmdir" -> saw(arguments, null);
      case "rename" -> {
        saw(arguments, null);
        saw(new Object[] {arguments[2], arguments[3]}, null);
      }
      case "attributes", "setAttributes" -> saw((Node) Objects.requireNonNull(result));
      case "open" -> saw(((Opened) Objects.requireNonNull(result)).node());
      default -> {}
    }
  }

  private void saw(Object[] arguments, @Nullable Node node) {
    Name at = new Name((long) arguments[0], (FileName) arguments[1]);
    if (node == null) {
      names.invalidate(at);
    } else {
      names.put(at, node.inode());
      nodes.put(node.inode(), new Seen(node, at));
    }
  }

  private void saw(Node node) {
    Seen before = nodes.getIfPresent(node.inode());
    nodes.put(node.inode(), new Seen(node, before == null ? null : before.name()));
  }

  // ---- answering

  /**
   * Answers in the owner's place.
   *
   * @param failure what to throw if that is not possible
   */
  @Nullable Object answer(String method, Object[] arguments, FsException failure)
      throws FsException {
    return switch (method) {
      case "lookup" -> {
        Long inode = names.getIfPresent(new Name((long) arguments[0], (FileName) arguments[1]));
        yield seen(inode == null ? 0 : inode, failure).node();
      }
      case "attributes" -> seen((long) arguments[0], failure).node();
      case "readSymbolicLink" -> readSymbolicLink((long) arguments[0], failure);
      case "open" -> {
        if (((int) arguments[1] & ACCESS_MODE) != OutputCalls.O_RDONLY) {
          throw failure;
        }
        yield open((long) arguments[0], failure);
      }
      case "read" -> {
        int size = (int) arguments[3];
        read((long) arguments[0], (long) arguments[2], size, (ReadSink) arguments[4], failure);
        yield null;
      }
      default -> throw failure;
    };
  }

  /** Opens a file for reading, if the source has the version that was seen. */
  private Opened open(long inode, FsException failure) throws FsException {
    Node node = seen(inode, failure).node();
    calls.close(openSource(inode, failure));
    return new Opened(node, -lastHandle.incrementAndGet(), false);
  }

  /** Whether the owner does not know a handle. */
  static boolean isOwn(long handle) {
    return handle < 0;
  }

  private void read(long inode, long offset, int size, ReadSink sink, FsException failure)
      throws FsException {
    int file = openSource(inode, failure);
    try {
      long end = seen(inode, failure).node().attributes().size();
      int wanted = (int) Math.min(size, Math.max(0, end - offset));
      ByteBuffer buffer = sink.buffer(wanted);
      buffer.position(0).limit(wanted);
      int count = wanted == 0 ? 0 : calls.read(file, buffer, offset);
      buffer.position(0).limit(count);
      sink.expect(count);
      if (count > 0) {
        sink.accept(new ReadResult.Bytes(buffer));
      }
    } catch (IOException e) {
      throw new FsException(Errno.EIO, "answering a read", e);
    } finally {
      calls.close(file);
    }
  }

  private FileName readSymbolicLink(long inode, FsException failure) throws FsException {
    Name name = name(inode, failure);
    int directory = openDirectory(name.directory(), failure);
    try {
      return calls.readSymbolicLink(directory, name.name());
    } finally {
      calls.close(directory);
    }
  }

  private Seen seen(long inode, FsException failure) throws FsException {
    Seen seen = nodes.getIfPresent(inode);
    if (seen == null) {
      throw failure;
    }
    return seen;
  }

  private Name name(long inode, FsException failure) throws FsException {
    Name name = seen(inode, failure).name();
    if (name == null) {
      throw failure;
    }
    return name;
  }

  private int openSource(long inode, FsException failure) throws FsException {
    Attributes wanted = seen(inode, failure).node().attributes();
    Name name = name(inode, failure);
    int directory = openDirectory(name.directory(), failure);
    int file = -1;
    try {
      file = calls.open(directory, name.name(), OutputCalls.O_RDONLY, 0);
      Attributes there = calls.status(file, NO_NAME).attributes();
      if (there.type() != FileType.REGULAR
          || !there.version().equals(wanted.version())
          || !SourceReads.hasSameAccess(there, wanted)) {
        throw failure;
      }
      return file;
    } catch (FsException e) {
      if (file >= 0) {
        calls.close(file);
      }
      throw failure;
    } finally {
      calls.close(directory);
    }
  }

  private int openDirectory(long inode, FsException failure) throws FsException {
    List<Seen> path = new ArrayList<>();
    long at = inode;
    while (at != WritableFileSystem.ROOT) {
      Name name = name(at, failure);
      path.add(0, seen(at, failure));
      at = name.directory();
      if (path.size() > MAX_DEPTH) {
        throw failure;
      }
    }
    int open = calls.openRoot(source);
    try {
      for (Seen directory : path) {
        Name name = Objects.requireNonNull(directory.name());
        int next = calls.openDirectory(open, name.name());
        calls.close(open);
        open = next;
        Attributes there = calls.status(open, NO_NAME).attributes();
        if (!SourceReads.hasSameAccess(there, directory.node().attributes())) {
          throw failure;
        }
      }
      return open;
    } catch (FsException e) {
      calls.close(open);
      throw e;
    }
  }
}
