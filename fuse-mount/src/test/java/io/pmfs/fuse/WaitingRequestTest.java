package io.pmfs.fuse;

import static io.pmfs.fs.PmfsFileSystem.ROOT;
import static io.pmfs.source.FaultyStore.Operation.LIST;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fuse.protocol.AnswerBuffers;
import io.pmfs.fuse.protocol.AskedRequest;
import io.pmfs.fuse.protocol.KernelChannel;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.KernelRequest;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.fuse.protocol.RequestLatencies;
import io.pmfs.fuse.system.NativeMemory;
import io.pmfs.metadata.FileName;
import io.pmfs.tier.Hold;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Unanswered requests, as other threads see them. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class WaitingRequestTest {
  private static final long HOUR = Duration.ofHours(1).toNanos();

  @TempDir private Path directory;
  private final RequestLatencies latencies = new RequestLatencies();
  private Hold lists;
  private KernelFixture fixture;
  private KernelOperations operations;

  @BeforeEach
  void makeOperations() throws Exception {
    fixture = new KernelFixture(directory);
    lists = fixture.faulty.on(LIST).hold();
    operations = new KernelOperations(fixture.fileSystem, 1000, null, -1, 56, AccessRule.MODES);
  }

  @AfterEach
  void closeFixture() {
    lists.release();
    fixture.close();
  }

  @Test
  void waiting_requestWithoutAnAnswer_saysWhatIsAskedForUntilItIsAnswered() throws Exception {
    try (KernelSession session = new KernelSession(operations, latencies)) {
      long before = System.nanoTime();
      CompletableFuture<?> lookup = lookup(session);
      lists.awaitReached();

      AskedRequest waiting = Objects.requireNonNull(session.waiting(0));

      assertThat(waiting.beginNanos()).isBetween(before, System.nanoTime());
      assertThat(waiting)
          .isEqualTo(
              new AskedRequest(
                  "lookup",
                  1000,
                  1000,
                  4711,
                  ROOT,
                  null,
                  FileName.of("small"),
                  -1,
                  -1,
                  waiting.beginNanos()));
      assertThat(session.waiting(HOUR)).isNull();
      assertThat(session.waiting(0)).isEqualTo(waiting);

      lists.release();
      lookup.join();
      assertThat(session.waiting(0)).isNull();
    }
  }

  private static CompletableFuture<?> lookup(KernelSession session) {
    byte[] name = KernelMessages.name("small");
    return CompletableFuture.runAsync(() -> session.ask(Opcode.LOOKUP, ROOT, name));
  }

  @Test
  void waiting_whileNothingIsTimed_isNotKnown() throws Exception {
    latencies.record(false);
    try (KernelSession session = new KernelSession(operations, latencies)) {
      CompletableFuture<?> lookup = lookup(session);
      lists.awaitReached();

      assertThat(session.waiting(0)).isNull();

      lists.release();
      lookup.join();
    }
  }

  @Test
  void waiting_whatWantsNoAnswer_isNone() {
    assertThat(begun(Opcode.FORGET.number()).waiting(0, System.nanoTime())).isNull();
    assertThat(begun(Opcode.INTERRUPT.number()).waiting(0, System.nanoTime())).isNull();
    assertThat(begun(4095).waiting(0, System.nanoTime())).isNull();
    assertThat(begun(Opcode.STATFS.number()).waiting(0, System.nanoTime())).isNotNull();
  }

  private static KernelRequest begun(int opcode) {
    ByteBuffer buffer =
        ByteBuffer.wrap(KernelSession.request(opcode, ROOT, new byte[8]))
            .order(ByteOrder.nativeOrder());
    KernelRequest request = new KernelRequest(buffer);
    request.begin(System.nanoTime());
    return request;
  }

  /** Sends requests with the same number in all fields, as fast as they are answered. */
  private static final class Numbers implements KernelChannel {
    private static final List<Opcode> OPCODES =
        List.of(Opcode.READ, Opcode.LOOKUP, Opcode.GETATTR, Opcode.LSEEK);

    private final SplittableRandom random = new SplittableRandom(1);
    private volatile boolean hasEnded;

    @Override
    public int receive(long buffer, int size) {
      if (hasEnded) {
        return -1;
      }
      int number = 1_000_000 + random.nextInt(1_000_000);
      Opcode opcode = OPCODES.get(random.nextInt(OPCODES.size()));
      byte[] body =
          switch (opcode) {
            case READ -> KernelMessages.read(number, number);
            case LSEEK -> KernelMessages.lseek(number, 0);
            case LOOKUP -> KernelMessages.name(Integer.toString(number));
            default -> new byte[0];
          };
      ByteBuffer request =
          ByteBuffer.wrap(KernelSession.request(opcode.number(), number, body))
              .order(ByteOrder.nativeOrder())
              .putInt(KernelProtocol.IN_UID, number)
              .putInt(KernelProtocol.IN_GID, number)
              .putInt(KernelProtocol.IN_PID, number);
      NativeMemory.view(buffer, size).put(request.array());
      return request.capacity();
    }

    @Override
    public boolean send(long vectors, int count) {
      return true;
    }

    @Override
    public boolean sendPiped(int pipe, int size) {
      return true;
    }

    private static AskedRequest whole(String operation, long number, long beginNanos) {
      boolean isRead = operation.equals("read");
      @Nullable FileName name =
          operation.equals("lookup") ? FileName.of(Long.toString(number)) : null;
      return new AskedRequest(
          operation,
          number,
          number,
          number,
          number,
          null,
          name,
          isRead || operation.equals("lseek") ? number : -1,
          isRead ? number : -1,
          beginNanos);
    }
  }

  @Test
  void waiting_whileTheWorkerGoesFromRequestToRequest_isAlwaysOneOfThem() throws Exception {
    lists.release();
    Numbers numbers = new Numbers();
    KernelWorker worker =
        new KernelWorker(
            numbers,
            operations,
            latencies,
            new RequestGate(),
            () -> {},
            () -> {},
            new AnswerBuffers(KernelProtocol.MAX_READ_BYTES));
    Thread thread = new Thread(worker);
    thread.start();
    int seen = 0;
    long end = System.nanoTime() + Duration.ofSeconds(1).toNanos();
    while (seen < 300_000 && System.nanoTime() < end) {
      AskedRequest waiting = worker.request().waiting(0, System.nanoTime());
      if (waiting != null) {
        assertThat(waiting)
            .isEqualTo(Numbers.whole(waiting.operation(), waiting.inode(), waiting.beginNanos()));
        seen++;
      }
    }
    numbers.hasEnded = true;
    thread.join();
    assertThat(seen).isGreaterThan(1000);
  }
}
