package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.pmfs.fuse.protocol.AnswerBuffers;
import io.pmfs.fuse.protocol.KernelChannel;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.fuse.protocol.RequestLatencies;
import io.pmfs.fuse.system.LibC;
import io.pmfs.fuse.system.NativeMemory;
import io.pmfs.fuse.system.Posix;
import io.pmfs.posix.FsException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * How much heap a warm read allocates on its worker's thread: one object, the location of the
 * bytes. Independent of the compiler's escape analysis, except for calls of splice(2) before they
 * are compiled.
 */
final class AllocationTest {
  private static final int WARM_UP = 2_000;
  private static final int MEASURED = 2_000;

  /** A kernel that repeats one request, and accepts each answer. */
  private static final class Repeating implements KernelChannel {
    private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private final byte[] request;
    private final ByteBuffer piped = ByteBuffer.allocateDirect(1 << 20);
    private final long pipedAddress = jnr.ffi.Pointer.wrap(Posix.RUNTIME, piped).address();
    private ByteBuffer in = piped;
    private int count;
    private int answers;
    private long before;
    private long after;

    Repeating(byte[] request) {
      this.request = request;
    }

    @Override
    public int receive(long buffer, int size) {
      if (count == 0) {
        in = NativeMemory.view(buffer, size);
      }
      in.clear();
      in.put(request);
      if (count == WARM_UP) {
        before = threads.getCurrentThreadAllocatedBytes();
      } else if (count == WARM_UP + MEASURED) {
        after = threads.getCurrentThreadAllocatedBytes();
        return -1;
      }
      count++;
      return request.length;
    }

    @Override
    public boolean send(long vectors, int count) {
      answers++;
      return true;
    }

    @Override
    public boolean sendPiped(int pipe, int size) throws FsException {
      int at = 0;
      while (at < size) {
        at += (int) LibC.INSTANCE.read(pipe, pipedAddress, size - at);
      }
      answers++;
      return true;
    }

    long bytesPerRequest() {
      assertThat(answers).isEqualTo(WARM_UP + MEASURED);
      return (after - before) / MEASURED;
    }
  }

  @ParameterizedTest
  @CsvSource({"1000, 32", "16384, 32", "131072, 80"})
  void read_ofAnOpenCopy(int size, int mostBytes, @TempDir Path directory) throws Exception {
    try (KernelFixture fixture = new KernelFixture(directory)) {
      long number = fixture.inode("large");
      try (KernelSession session = fixture.session()) {
        session.ask(Opcode.READ, number, KernelMessages.read(0, 4096));
      }
      fixture.awaitStaged();
      Repeating kernel =
          new Repeating(
              KernelSession.request(Opcode.READ.number(), number, KernelMessages.read(4096, size)));
      KernelOperations operations =
          new KernelOperations(fixture.fileSystem, 1000, null, -1, 56, AccessRule.MODES);
      new KernelWorker(
              kernel,
              operations,
              new RequestLatencies(),
              new RequestGate(),
              () -> {},
              () -> {},
              new AnswerBuffers(KernelProtocol.MAX_READ_BYTES))
          .run();
      assertThat(kernel.bytesPerRequest()).isBetween(0L, (long) mostBytes);
    }
  }
}
