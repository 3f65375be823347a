package io.pmfs.writable.remote;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.OwnedFileSystem;
import io.pmfs.writable.WritableFileSystem.AtSource;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Entry;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.BiConsumer;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;

class MessageTest {
  private static final Instant TIME = Instant.ofEpochSecond(-5, 999_999_999);
  private static final FileName NAME = FileName.ofLatin1("n\u00ff");
  private static final Attributes ATTRIBUTES =
      new Attributes(0100644, 2, -2, 3, 4, 5, 6, TIME, Instant.EPOCH, TIME.plusSeconds(9));
  private static final Node NODE = new Node(1L << 40, ATTRIBUTES);
  private static final AtSource PLACE = new AtSource(FileName.of("a/b"), NAME, 8);
  private static final NodeData.Id FILE = new NodeData.Id(9, 10);
  private static final NodeData.Target TARGET =
      new NodeData.Target(FileName.of("d"), FileName.of(".pmfs-tmp-1"), 7, 1, 2);

  private static final DrainStatus STATUS =
      new DrainStatus(
          1,
          2,
          3,
          4,
          5,
          6,
          7,
          8,
          9,
          10,
          List.of(
              new DrainStatus.Failure(
                  "p", "full", new FsException(Errno.ENOSPC, "it is full"), true, 3),
              new DrainStatus.Failure("q", "other", null, false, 0)),
          new DrainStatus.Away("node", true, TIME, "path", 11));

  /** A value, and how it travels. */
  private record Sample<T>(
      T value, BiConsumer<MessageWriter, T> writing, MessageReader.Reading<T> reading) {
    byte[] bytes() {
      MessageWriter out = Message.request();
      writing.accept(out, value);
      return out.toBytes();
    }

    T read(byte[] bytes) throws IOException {
      MessageReader in = new MessageReader(bytes);
      in.head();
      return reading.from(in);
    }
  }

  private static <T> Sample<T> sample(
      T value, BiConsumer<MessageWriter, T> writing, MessageReader.Reading<T> reading) {
    return new Sample<>(value, writing, reading);
  }

  private static List<Sample<?>> samples() {
    Opened opened = new Opened(NODE, 4, true, 5, PLACE);
    NewAttributes all = new NewAttributes(1, 2, 3, 4L, TIME, TIME, 5, true);
    NewAttributes none = new NewAttributes(null, null, null, null, null, null, 0, false);
    NodeData.Frozen frozen =
        new NodeData.Frozen(2, 2, TIME, true, ByteBuffer.wrap(new byte[] {1, 2}));
    return List.of(
        sample(-7L, MessageWriter::number, MessageReader::number),
        sample(-8, MessageWriter::small, MessageReader::small),
        sample(200, MessageWriter::octet, MessageReader::octet),
        sample(true, MessageWriter::flag, MessageReader::isNext),
        sample("t\u00e4xt", MessageWriter::text, MessageReader::text),
        sample(NAME, MessageWriter::name, MessageReader::name),
        sample(TIME, MessageWriter::time, MessageReader::time),
        sample(new UUID(1, -2), MessageWriter::id, MessageReader::id),
        sample(ByteBuffer.wrap(new byte[1000]), MessageWriter::content, MessageReader::content),
        sample(new Caller(0, 5, 6, -1), MessageWriter::caller, MessageReader::caller),
        sample(NODE, MessageWriter::node, MessageReader::node),
        sample(new Entry(NAME, 4, FileType.FIFO, 5), MessageWriter::entry, MessageReader::entry),
        sample(opened, MessageWriter::opened, MessageReader::opened),
        sample(new Opened(NODE, 4, false, 0, null), MessageWriter::opened, MessageReader::opened),
        sample(all, MessageWriter::newAttributes, MessageReader::newAttributes),
        sample(none, MessageWriter::newAttributes, MessageReader::newAttributes),
        sample(
            new StoreStatistics(1, 2, 3, 4, 5, 6, 7, 8),
            MessageWriter::statistics,
            MessageReader::statistics),
        sample(FILE, MessageWriter::file, MessageReader::file),
        sample(TARGET, MessageWriter::target, MessageReader::target),
        sample(frozen, MessageWriter::frozen, MessageReader::frozen),
        sample(new NodeData.Paused(FILE, 3, frozen), MessageWriter::paused, MessageReader::paused));
  }

  @Test
  void value_thatTravels_isTheSame() throws Exception {
    for (Sample<?> sample : samples()) {
      assertThat((Object) sample.read(sample.bytes())).isEqualTo(sample.value());
    }
    MessageWriter out = Message.request().status(STATUS).extended(Map.of(NAME, new byte[] {1}));
    MessageReader in = new MessageReader(out.toBytes());
    in.head();
    assertThat(in.status()).usingRecursiveComparison().isEqualTo(STATUS);
    assertThat(in.extended().get(NAME)).containsExactly(1);
  }

  @Test
  void value_thatEndsEarly_isMalformed() throws Exception {
    for (Sample<?> sample : samples()) {
      byte[] whole = sample.bytes();
      for (int size = Message.HEAD_BYTES; size < whole.length; size++) {
        byte[] part = Arrays.copyOf(whole, size);
        assertThatThrownBy(() -> sample.read(part)).isInstanceOf(IOException.class);
      }
    }
  }

  @Test
  void length_thatIsLongerThanTheMessage_isNotBelieved() {
    for (int length : new int[] {-1, 5, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
      byte[] bytes = new MessageWriter().small(length).small(0).toBytes();
      assertThatThrownBy(() -> new MessageReader(bytes).bytes()).isInstanceOf(IOException.class);
      assertThatThrownBy(() -> new MessageReader(bytes).list(MessageReader::isNext))
          .isInstanceOf(IOException.class);
      assertThatThrownBy(() -> new MessageReader(bytes).extended()).isInstanceOf(IOException.class);
    }
  }

  @Test
  void value_thatIsNone_isMalformed() {
    byte[] place = new MessageWriter().name(FileName.of("..")).name(NAME).number(1).toBytes();
    assertThatThrownBy(() -> new MessageReader(place).atSource()).isInstanceOf(IOException.class);
    byte[] time = new MessageWriter().number(Long.MAX_VALUE).small(0).toBytes();
    assertThatThrownBy(() -> new MessageReader(time).time()).isInstanceOf(IOException.class);
    byte[] entry = new MessageWriter().name(NAME).number(1).octet(15).number(1).toBytes();
    assertThatThrownBy(() -> new MessageReader(entry).entry()).isInstanceOf(IOException.class);
    for (long size : new long[] {-1, 2}) {
      MessageWriter frozen = new MessageWriter().number(size).number(0).time(TIME).flag(true);
      byte[] bytes = frozen.optional(ByteBuffer.allocate(1), MessageWriter::content).toBytes();
      assertThatThrownBy(() -> new MessageReader(bytes).frozen()).isInstanceOf(IOException.class);
    }
    byte[] mount = new MessageWriter().small(1).text("../x").toBytes();
    assertThatThrownBy(() -> new MessageReader(mount).joined()).isInstanceOf(IOException.class);
  }

  /** Nodes with other messages must have another version: this test says which. */
  @Test
  void version_isAChecksumOfTheMessages() throws Exception {
    CRC32C sum = new CRC32C();
    for (Sample<?> sample : samples()) {
      byte[] bytes = sample.bytes();
      sum.update(bytes, Integer.BYTES, bytes.length - Integer.BYTES);
    }
    sum.update(new MessageWriter().status(STATUS).extended(Map.of(NAME, new byte[1])).toBytes());
    sum.update(OwnerRequestTest.askEverything().bytes());
    for (Class<?> requests : List.of(OwnedFileSystem.class, NodeData.class)) {
      Arrays.stream(requests.getMethods())
          .map(Method::toGenericString)
          .sorted()
          .forEach(text -> sum.update(text.getBytes(StandardCharsets.UTF_8)));
    }
    assertThat((int) sum.getValue())
        .as("the messages differ: give Message.VERSION the new number")
        .isEqualTo(Message.VERSION);
  }
}
