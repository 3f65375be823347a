package io.pmfs.writable.remote;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.WritableFileSystem.AtSource;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Entry;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Writes the values of a message; {@link MessageReader} reads them. A change of the format must
 * change {@link Message#VERSION}.
 */
final class MessageWriter {
  private static final int FIRST_BYTES = 256;

  private ByteBuffer bytes = ByteBuffer.allocate(FIRST_BYTES);

  private ByteBuffer room(int more) {
    if (bytes.remaining() < more) {
      int size = Math.max(2 * bytes.position(), bytes.position() + more);
      bytes = ByteBuffer.allocate(size).put(bytes.flip());
    }
    return bytes;
  }

  byte[] toBytes() {
    byte[] written = new byte[bytes.position()];
    bytes.get(0, written);
    return written;
  }

  MessageWriter number(long value) {
    room(Long.BYTES).putLong(value);
    return this;
  }

  private MessageWriter numbers(long... values) {
    for (long value : values) {
      number(value);
    }
    return this;
  }

  MessageWriter small(int value) {
    room(Integer.BYTES).putInt(value);
    return this;
  }

  MessageWriter octet(int value) {
    room(1).put((byte) value);
    return this;
  }

  MessageWriter flag(boolean isSet) {
    return octet(isSet ? 1 : 0);
  }

  MessageWriter bytes(byte[] value) {
    return content(ByteBuffer.wrap(value));
  }

  MessageWriter content(ByteBuffer value) {
    int size = value.remaining();
    room(Integer.BYTES + size).putInt(size).put(value.duplicate());
    return this;
  }

  MessageWriter pieces(List<ByteBuffer> pieces) {
    int size = pieces.stream().mapToInt(ByteBuffer::remaining).sum();
    room(Integer.BYTES + size).putInt(size);
    pieces.forEach(bytes::put);
    return this;
  }

  MessageWriter name(FileName name) {
    return bytes(name.bytes());
  }

  MessageWriter text(String text) {
    return bytes(text.getBytes(StandardCharsets.UTF_8));
  }

  MessageWriter time(Instant time) {
    return number(time.getEpochSecond()).small(time.getNano());
  }

  MessageWriter id(UUID id) {
    return number(id.getMostSignificantBits()).number(id.getLeastSignificantBits());
  }

  <T> MessageWriter optional(@Nullable T value, BiConsumer<MessageWriter, T> writing) {
    flag(value != null);
    if (value != null) {
      writing.accept(this, value);
    }
    return this;
  }

  <T> MessageWriter list(Collection<T> values, BiConsumer<MessageWriter, T> writing) {
    small(values.size());
    values.forEach(value -> writing.accept(this, value));
    return this;
  }

  // ---- values of the file system

  MessageWriter at(long directory, FileName name) {
    return number(directory).name(name);
  }

  /** The process that asks; its request number is in the head. */
  MessageWriter caller(Caller caller) {
    bytes.putLong(Message.UNIQUE_AT, caller.unique());
    return small(caller.uid()).small(caller.gid());
  }

  MessageWriter attributes(Attributes a) {
    return small(a.mode())
        .small(a.linkCount())
        .small(a.uid())
        .small(a.gid())
        .numbers(a.device(), a.size(), a.blocks())
        .time(a.accessTime())
        .time(a.modificationTime())
        .time(a.changeTime());
  }

  MessageWriter node(Node node) {
    return number(node.inode()).attributes(node.attributes());
  }

  MessageWriter entry(Entry entry) {
    return name(entry.name())
        .number(entry.inode())
        .octet(entry.type().number())
        .number(entry.position());
  }

  MessageWriter opened(Opened opened) {
    return node(opened.node())
        .number(opened.handle())
        .flag(opened.isOnlyWritten())
        .number(opened.generation())
        .optional(opened.source(), MessageWriter::atSource);
  }

  MessageWriter atSource(AtSource place) {
    return name(place.directory()).name(place.name()).number(place.inode());
  }

  MessageWriter newAttributes(NewAttributes wanted) {
    return optional(wanted.mode(), MessageWriter::small)
        .optional(wanted.uid(), MessageWriter::small)
        .optional(wanted.gid(), MessageWriter::small)
        .optional(wanted.size(), MessageWriter::number)
        .optional(wanted.accessTime(), MessageWriter::time)
        .optional(wanted.modificationTime(), MessageWriter::time)
        .number(wanted.handle())
        .flag(wanted.clearSetId());
  }

  MessageWriter extended(Map<FileName, byte[]> attributes) {
    return list(attributes.entrySet(), (to, one) -> to.name(one.getKey()).bytes(one.getValue()));
  }

  MessageWriter statistics(StoreStatistics s) {
    return numbers(s.blockSize(), s.fragmentSize(), s.blocks(), s.blocksFree())
        .numbers(s.blocksAvailable(), s.files(), s.filesFree(), s.nameMaximum());
  }

  MessageWriter failure(FsException failure) {
    String whole = String.valueOf(failure.getMessage());
    String prefix = failure.errno() + ": "; // The constructor adds it again.
    return small(failure.errno().number())
        .text(whole.startsWith(prefix) ? whole.substring(prefix.length()) : whole);
  }

  // ---- drain status

  MessageWriter status(DrainStatus s) {
    return numbers(s.dirtyBytes(), s.dirtyFiles(), s.waitingChanges(), s.oldestAgeSeconds())
        .numbers(s.drainedBytes(), s.drainedChanges(), s.bytesPerSecond(), s.localBytes())
        .numbers(s.conflicts(), s.refused())
        .list(s.failures(), MessageWriter::named)
        .optional(s.away(), MessageWriter::away);
  }

  private MessageWriter named(DrainStatus.Failure failure) {
    return text(failure.path())
        .text(failure.reason())
        .optional(failure.cause(), MessageWriter::failure)
        .flag(failure.isAside())
        .number(failure.behind());
  }

  private MessageWriter away(DrainStatus.Away away) {
    return text(away.node())
        .flag(away.isOwner())
        .time(away.since())
        .text(away.path())
        .number(away.changes());
  }

  // ---- content kept by a node

  MessageWriter file(NodeData.Id file) {
    return number(file.inode()).number(file.generation());
  }

  MessageWriter target(NodeData.Target target) {
    return name(target.directory())
        .name(target.name())
        .number(target.inode())
        .small(target.uid())
        .small(target.gid());
  }

  MessageWriter paused(NodeData.Paused paused) {
    return file(paused.file()).number(paused.pauses()).frozen(paused.frozen());
  }

  MessageWriter frozen(NodeData.Frozen frozen) {
    return number(frozen.size())
        .number(frozen.blocks())
        .time(frozen.modified())
        .flag(frozen.onlyGrew())
        .optional(frozen.content(), MessageWriter::content);
  }
}
