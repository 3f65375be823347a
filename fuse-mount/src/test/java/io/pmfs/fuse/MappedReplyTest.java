package io.pmfs.fuse;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.fuse.protocol.AnswerBuffers;
import io.pmfs.fuse.protocol.KernelChannel;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.KernelReply;
import io.pmfs.fuse.system.LibC;
import io.pmfs.fuse.system.LinuxDaxFiles;
import io.pmfs.fuse.system.Posix;
import io.pmfs.memory.ReadResult;
import io.pmfs.posix.FsException;
import io.pmfs.tier.DaxFiles.FileMapping;
import java.io.EOFException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Objects;
import jnr.ffi.Pointer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Answers from a mapped file. */
final class MappedReplyTest {
  private static final int SIZE = 3 << 20;
  private static final int UNIQUE = 4711;

  @TempDir private Path directory;
  private final byte[] content = KernelFixture.content(SIZE);
  private final Recorder channel = new Recorder();
  private FileChannel file;
  private FileMapping mapping;

  @BeforeEach
  void map() throws Exception {
    file = FileChannel.open(directory.resolve("copy"), CREATE, READ, WRITE);
    file.write(ByteBuffer.wrap(content));
    mapping = Objects.requireNonNull(new LinuxDaxFiles().map(file, SIZE));
  }

  @AfterEach
  void unmap() throws Exception {
    mapping.close();
    file.close();
  }

  private static ReadResult.Mapping always(ByteBuffer memory) {
    return new ReadResult.Mapping(memory, to -> to.put(memory.duplicate()));
  }

  private ReadResult.Mapping range(int offset, int size) {
    ReadResult range = new ReadResult.FileRange(file, offset, size);
    return new ReadResult.Mapping(mapping.range(offset, size), range::copyTo);
  }

  private void answer(ReadResult piece) throws Exception {
    try (KernelReply reply =
        new KernelReply(channel, new AnswerBuffers(KernelProtocol.MAX_READ_BYTES))) {
      reply.begin(UNIQUE);
      reply.expect(piece.size());
      reply.accept(piece);
      reply.sendCollected();
      assertThat(reply.isAnswered()).isTrue();
    }
  }

  private void assertAnswer(int offset, int size) {
    ByteBuffer answer = ByteBuffer.wrap(channel.answer).order(ByteOrder.nativeOrder());
    assertThat(answer.getInt(KernelProtocol.OUT_LENGTH)).isEqualTo(KernelReply.BODY + size);
    assertThat(answer.getLong(KernelProtocol.OUT_UNIQUE)).isEqualTo(UNIQUE);
    assertThat(Arrays.copyOfRange(channel.answer, KernelReply.BODY, channel.answer.length))
        .isEqualTo(Arrays.copyOfRange(content, offset, offset + size));
  }

  @Test
  void accept_rangeOfAMapping_goesByAPipe() throws Exception {
    for (int[] range : new int[][] {{0, 128 << 10}, {4097, 100_001}, {SIZE - 40_000, 40_000}}) {
      answer(range(range[0], range[1]));
      assertAnswer(range[0], range[1]);
      assertThat(channel.piped).isTrue();
    }
  }

  @Test
  void accept_largestRequest_isAnswered() throws Exception {
    answer(range(1, KernelProtocol.MAX_READ_BYTES));
    assertAnswer(1, KernelProtocol.MAX_READ_BYTES);
  }

  @Test
  void accept_smallRange_isCopied() throws Exception {
    answer(range(77, 1000));
    assertAnswer(77, 1000);
    assertThat(channel.piped).isFalse();
  }

  @Test
  void accept_memoryWithoutAFile_isAnswered() throws Exception {
    answer(always(mapping.range(77, 1000)));
    assertAnswer(77, 1000);
    answer(always(mapping.range(77, 200_000).position(1)));
    assertAnswer(78, 199_999);
  }

  /** So that the next tier is tried: nothing was sent to the kernel. */
  @Test
  void accept_fileCutShort_failsBeforeAnythingIsSent() throws Exception {
    file.truncate(1 << 20);
    try (KernelReply reply =
        new KernelReply(channel, new AnswerBuffers(KernelProtocol.MAX_READ_BYTES))) {
      reply.begin(UNIQUE);
      reply.expect(256 << 10);
      assertThatThrownBy(() -> reply.accept(range((1 << 20) - 8192, 256 << 10)))
          .isInstanceOf(EOFException.class);
      assertThat(reply.isAnswered()).isFalse();

      reply.accept(range(0, 256 << 10));
      assertAnswer(0, 256 << 10);
    }
  }

  /** Records the sent bytes. */
  private static final class Recorder implements KernelChannel {
    private byte[] answer = new byte[0];
    private boolean piped;

    @Override
    public int receive(long buffer, int size) {
      return -1;
    }

    @Override
    public boolean send(long vectors, int count) {
      java.io.ByteArrayOutputStream bytes = new java.io.ByteArrayOutputStream();
      Pointer memory = Pointer.wrap(Posix.RUNTIME, vectors);
      for (int i = 0; i < count; i++) {
        Pointer base = Pointer.wrap(Posix.RUNTIME, memory.getLongLong(i * 16L));
        byte[] piece = new byte[Math.toIntExact(memory.getLongLong(i * 16L + 8))];
        base.get(0, piece, 0, piece.length);
        bytes.writeBytes(piece);
      }
      answer = bytes.toByteArray();
      piped = false;
      return true;
    }

    @Override
    public boolean sendPiped(int pipe, int size) throws FsException {
      ByteBuffer buffer = ByteBuffer.allocateDirect(size);
      long address = Pointer.wrap(Posix.RUNTIME, buffer).address();
      int done = 0;
      while (done < size) {
        long count = LibC.INSTANCE.read(pipe, address + done, size - done);
        assertThat(count).isPositive();
        done += (int) count;
      }
      answer = new byte[size];
      buffer.get(answer);
      piped = true;
      return true;
    }
  }
}
