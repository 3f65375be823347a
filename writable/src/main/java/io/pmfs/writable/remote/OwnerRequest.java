package io.pmfs.writable.remote;

import com.google.common.base.CaseFormat;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OwnedFileSystem;
import io.pmfs.writable.WritableFileSystem.Entry;
import io.pmfs.writable.places.CopyBuffers;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The requests to the owner of a writable mount. Each reads the values that {@link OwnerCalls} or
 * {@link RemoteFileSystem} wrote, calls the mount, and writes the result.
 */
enum OwnerRequest {
  JOIN(OwnerRequest::ofASession),
  END_SESSION(OwnerRequest::ofASession),

  /** Interrupts another request of the node; peers know it by its title, and answer it first. */
  INTERRUPT(OwnerRequest::ofASession),
  FORGET((fs, in, out) -> in.list(MessageReader::number).forEach(inode -> fs.forget(inode, 1))),

  LOOKUP((fs, in, out) -> out.optional(fs.lookup(in.number(), in.name()), MessageWriter::node)),
  ATTRIBUTES((fs, in, out) -> out.node(fs.attributes(in.number()))),
  RECORDED((fs, in, out) -> out.node(fs.recorded(in.number()))),
  LIST(OwnerRequest::list),
  PARENT((fs, in, out) -> out.number(fs.parent(in.number()))),
  READ_SYMBOLIC_LINK((fs, in, out) -> out.name(fs.readSymbolicLink(in.number()))),
  EXTENDED_ATTRIBUTE(
      (fs, in, out) ->
          out.optional(fs.extendedAttribute(in.number(), in.name()), MessageWriter::bytes)),
  EXTENDED_ATTRIBUTES((fs, in, out) -> out.extended(fs.extendedAttributes(in.number()))),
  STATISTICS((fs, in, out) -> out.statistics(fs.statistics())),

  MKDIR((fs, in, out) -> out.node(fs.mkdir(in.number(), in.name(), in.small(), in.caller()))),
  MKNOD(
      (fs, in, out) ->
          out.node(fs.mknod(in.number(), in.name(), in.small(), in.number(), in.caller()))),
  SYMLINK((fs, in, out) -> out.node(fs.symlink(in.number(), in.name(), in.name(), in.caller()))),
  LINK((fs, in, out) -> out.node(fs.link(in.number(), in.number(), in.name(), in.caller()))),
  UNLINK((fs, in, out) -> fs.unlink(in.number(), in.name(), in.caller())),
  RMDIR((fs, in, out) -> fs.rmdir(in.number(), in.name(), in.caller())),
  RENAME(
      (fs, in, out) ->
          fs.rename(in.number(), in.name(), in.number(), in.name(), in.small(), in.caller())),

  CREATE(
      (fs, in, out) ->
          out.opened(fs.create(in.number(), in.name(), in.small(), in.small(), in.caller()))),
  CREATE_HERE(
      (fs, in, out) ->
          out.opened(fs.createHere(in.number(), in.name(), in.small(), in.small(), in.caller()))),
  CREATE_UNNAMED(
      (fs, in, out) ->
          out.opened(fs.createUnnamed(in.number(), in.small(), in.small(), in.caller()))),
  OPEN((fs, in, out) -> out.opened(fs.open(in.number(), in.small(), in.caller()))),
  OPEN_HERE((fs, in, out) -> out.opened(fs.openHere(in.number(), in.small(), in.caller()))),
  RESUME(
      (fs, in, out) ->
          out.number(
              fs.resume(
                  in.number(),
                  in.number(),
                  in.number(),
                  in.number(),
                  in.isNext(),
                  in.number(),
                  in.caller()))),
  READ(OwnerRequest::read),
  WRITE(OwnerRequest::write),
  FLUSH(
      (fs, in, out) ->
          fs.flushHere(
              in.number(),
              in.number(),
              in.optional(MessageReader::paused).orElse(null),
              in.caller())),
  FSYNC((fs, in, out) -> fs.fsync(in.number(), in.number(), in.isNext(), in.caller())),
  FSYNC_DIRECTORY((fs, in, out) -> fs.fsyncDirectory(in.number(), in.caller())),
  RELEASE((fs, in, out) -> fs.release(in.number(), in.number())),
  CLOSE_UNANSWERED((fs, in, out) -> fs.closeUnanswered(in.number(), in.caller())),
  ALLOCATE(
      (fs, in, out) ->
          fs.allocate(in.number(), in.number(), in.small(), in.number(), in.number(), in.caller())),
  COPY_RANGE(
      (fs, in, out) ->
          out.number(
              fs.copyRange(
                  in.number(),
                  in.number(),
                  in.number(),
                  in.number(),
                  in.number(),
                  in.number(),
                  Math.min(in.number(), Limits.MOST_COPIED),
                  in.caller()))),
  SEEK((fs, in, out) -> out.number(fs.seek(in.number(), in.number(), in.number(), in.small()))),
  UNUSED(
      (fs, in, out) ->
          out.list(fs.unused(in.list(MessageReader::file), in.caller()), MessageWriter::file)),

  SET_ATTRIBUTES(
      (fs, in, out) -> out.node(fs.setAttributes(in.number(), in.newAttributes(), in.caller()))),
  SET_EXTENDED_ATTRIBUTE(
      (fs, in, out) ->
          fs.setExtendedAttribute(in.number(), in.name(), in.bytes(), in.small(), in.caller())),
  REMOVE_EXTENDED_ATTRIBUTE(
      (fs, in, out) -> fs.removeExtendedAttribute(in.number(), in.name(), in.caller())),

  /** Returns an {@link Upkeep.Report}. */
  DRAIN_STATUS(
      (fs, in, out) ->
          out.status(fs.drainStatus())
              .optional(fs.stateFailure(), MessageWriter::text)
              .optional(fs.sourceFailure(), MessageWriter::text)),
  ACKNOWLEDGE((fs, in, out) -> out.status(fs.acknowledge())),
  RETRY((fs, in, out) -> out.list(fs.retry(in.name()), MessageWriter::text)),
  DROP((fs, in, out) -> out.list(fs.drop(in.name()), MessageWriter::text)),
  WAITING(
      (fs, in, out) ->
          out.list(fs.waiting(Math.min(in.small(), Message.LISTED)), MessageWriter::text)),
  DRAIN((fs, in, out) -> out.flag(fs.drain(Math.min(in.number(), Limits.MOST_WAIT_MILLIS))));

  /** Limits of one request; the caller repeats it for the rest. */
  private static final class Limits {
    static final long MOST_WAIT_MILLIS = 60_000;
    static final long MOST_COPIED = 256 << 20;
  }

  private interface Making {
    void make(OwnedFileSystem fs, MessageReader in, MessageWriter out)
        throws FsException, IOException, InterruptedException;
  }

  private static final Map<String, OwnerRequest> BY_TITLE =
      Arrays.stream(values()).collect(Collectors.toMap(one -> one.title, Function.identity()));

  /** Name in the request's path: {@code fsyncDirectory}. */
  final String title = CaseFormat.UPPER_UNDERSCORE.to(CaseFormat.LOWER_CAMEL, name());

  @SuppressWarnings("ImmutableEnumChecker") // They are stateless functions.
  private final Making making;

  OwnerRequest(Making making) {
    this.making = making;
  }

  static @Nullable OwnerRequest of(String title) {
    return BY_TITLE.get(title);
  }

  /** Whether it changes nothing and may wait for the source. */
  boolean waits() {
    return switch (this) {
      case DRAIN, WAITING, DRAIN_STATUS, FSYNC, FSYNC_DIRECTORY -> true;
      default -> false;
    };
  }

  /**
   * Whether the owner must not make it any more once the node has given it up. Looks are given up
   * early, while programs go on waiting, and a late one does no harm.
   */
  boolean endsEra() {
    return !waits() && this != ATTRIBUTES;
  }

  /** Whether the node gives it the number by which it is made once, because no kernel does. */
  boolean isNumbered() {
    return switch (this) {
      case RESUME, ACKNOWLEDGE, RETRY, DROP -> true;
      default -> false;
    };
  }

  /**
   * Makes a request at the owner's mount and returns the answer.
   *
   * @throws IOException if the values are not those of such a request
   */
  byte[] make(OwnedFileSystem fs, MessageReader in)
      throws FsException, IOException, InterruptedException {
    MessageWriter out = Message.answer(Message.Kind.RESULT);
    making.make(fs, in, out);
    return Message.sealed(out);
  }

  private static void ofASession(OwnedFileSystem fs, MessageReader in, MessageWriter out) {
    throw new IllegalStateException("OwnerServer knows the sessions");
  }

  private static void list(OwnedFileSystem fs, MessageReader in, MessageWriter out)
      throws FsException, IOException {
    List<Entry> entries = new ArrayList<>();
    fs.list(
        in.number(), in.number(), entry -> entries.size() < Message.LISTED && entries.add(entry));
    out.list(entries, MessageWriter::entry);
  }

  private static void write(OwnedFileSystem fs, MessageReader in, MessageWriter out)
      throws FsException, IOException {
    long inode = in.number();
    long handle = in.number();
    long offset = in.number();
    ByteBuffer bytes = in.nativeContent();
    try {
      out.small(fs.write(inode, handle, offset, bytes, in.isNext(), in.isNext(), in.caller()));
    } finally {
      CopyBuffers.give(bytes);
    }
  }

  private static void read(OwnedFileSystem fs, MessageReader in, MessageWriter out)
      throws FsException, IOException {
    try (Pieces pieces = new Pieces()) {
      fs.read(in.number(), in.number(), in.number(), in.small(), pieces);
      out.pieces(pieces.pieces);
    }
  }

  /** Collects content. Has no buffer while the mount waits for the source. */
  private static final class Pieces implements ReadSink, AutoCloseable {
    private final List<ByteBuffer> pieces = new ArrayList<>();
    private @Nullable ByteBuffer direct;

    @Override
    public ByteBuffer buffer(int size) {
      ByteBuffer buffer = direct == null ? CopyBuffers.take() : direct;
      direct = buffer;
      return buffer.clear();
    }

    @Override
    public void accept(ReadResult piece) throws IOException {
      ByteBuffer bytes = ByteBuffer.allocate(piece.size());
      piece.copyTo(bytes);
      pieces.add(bytes.rewind());
    }

    @Override
    public void close() {
      if (direct != null) {
        CopyBuffers.give(direct);
      }
    }
  }
}
