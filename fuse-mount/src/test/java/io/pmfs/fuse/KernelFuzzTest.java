package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fuse.KernelSession.Answer;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Requests that no kernel sends, and file systems with unexpected failures. */
@Timeout(value = 180, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class KernelFuzzTest {
  private static final int REQUESTS = 200_000;
  private static final int LIMIT = 8192;
  private static final Opcode[] OPCODES = Opcode.values();
  private static final String[] NAMES = {
    "small", "large", "directory", "link", "..", ".", "absent"
  };

  @TempDir private Path directory;
  private final long seed = System.nanoTime();
  private final Random random = new Random(seed);
  private final List<Long> nodes = new ArrayList<>();

  KernelFuzzTest() {
    System.out.println("KernelFuzzTest seed " + seed);
  }

  @Test
  void requests_atRandom_eachGetOneWellFormedAnswer() throws Exception {
    try (KernelFixture fixture = new KernelFixture(directory);
        KernelSession session = fixture.session()) {
      findNodes(fixture);
      int answered = 0;
      int succeeded = 0;
      for (int i = 0; i < REQUESTS; i++) {
        byte[] request = mutated(plausible());
        List<Answer> answers = session.askAll(request);
        assertOneIfWanted(request, answers, i);
        answered += answers.size();
        succeeded += (int) answers.stream().filter(answer -> answer.error() == 0).count();
      }
      // Otherwise this would only test the check of the header.
      assertThat(answered).isGreaterThan(REQUESTS / 2);
      assertThat(succeeded).isGreaterThan(REQUESTS / 20);
      assertThat(session.endings).hasValue(0);
    }
  }

  private void findNodes(KernelFixture fixture) throws FsException {
    for (String name : List.of("small", "large", "empty", "directory", "link", "fifo", "sub")) {
      nodes.add(fixture.inode(name));
    }
    nodes.addAll(List.of(1L, 0L, -1L, Long.MIN_VALUE, 1L << 40, 1L << 47));
  }

  private static void assertOneIfWanted(byte[] request, List<Answer> answers, int index) {
    if (request.length < KernelProtocol.IN_HEADER_SIZE) {
      assertThat(answers).as("request %d", index).isEmpty();
      return;
    }
    ByteBuffer header = ByteBuffer.wrap(request).order(ByteOrder.nativeOrder());
    Opcode opcode = Opcode.of(header.getInt(4));
    if (opcode != null && !opcode.isAnswered()) {
      assertThat(answers).as("request %d, %s", index, opcode).isEmpty();
      return;
    }
    assertThat(answers).as("request %d, %s", index, opcode).hasSize(1);
    Answer answer = answers.get(0);
    boolean wellFormed =
        answer.length() == answer.all().length
            && answer.unique() == header.getLong(8)
            // The kernel accepts no other numbers.
            && answer.error() <= 0
            && answer.error() > -512
            && (answer.error() == 0 || answer.length() == KernelProtocol.OUT_HEADER_SIZE)
            && answer.error() != -Errno.EIO.number();
    assertThat(wellFormed)
        .as("request %d, %s: length %d, error %d", index, opcode, answer.length(), answer.error())
        .isTrue();
  }

  private byte[] plausible() {
    Opcode opcode = OPCODES[random.nextInt(OPCODES.length)];
    byte[] body =
        switch (opcode) {
          case LOOKUP -> KernelMessages.name(NAMES[random.nextInt(NAMES.length)]);
          case READ, READDIR, READDIRPLUS ->
              KernelMessages.read(random.nextInt(20_000), random.nextInt(20_000));
          case LSEEK -> KernelMessages.lseek(random.nextInt(20_000), random.nextInt(6));
          case GETXATTR -> KernelMessages.xattr(random.nextInt(100), "user.x");
          case LISTXATTR -> KernelMessages.xattr(random.nextInt(100));
          case INIT -> KernelMessages.init(7, 23 + random.nextInt(30), random.nextLong());
          default -> new byte[random.nextInt(80)];
        };
    return KernelSession.request(opcode.number(), nodes.get(random.nextInt(nodes.size())), body);
  }

  private byte[] mutated(byte[] request) {
    return switch (random.nextInt(8)) {
      case 0 -> Arrays.copyOf(request, random.nextInt(request.length + 1));
      case 1 -> withLength(Arrays.copyOf(request, 40 + random.nextInt(request.length - 39)));
      case 2 -> withLength(Arrays.copyOf(request, request.length + random.nextInt(LIMIT - 1000)));
      case 3 -> flipped(request);
      case 4 -> withEdgeNumber(request);
      case 5 -> noise();
      default -> request;
    };
  }

  private static byte[] withLength(byte[] request) {
    ByteBuffer.wrap(request).order(ByteOrder.nativeOrder()).putInt(0, request.length);
    return request;
  }

  private byte[] flipped(byte[] request) {
    for (int i = random.nextInt(4); i >= 0; i--) {
      request[random.nextInt(request.length)] ^= (byte) (1 << random.nextInt(8));
    }
    return request;
  }

  private byte[] withEdgeNumber(byte[] request) {
    long[] edges = {-1, 0, 1, Long.MAX_VALUE, Long.MIN_VALUE, Integer.MAX_VALUE, 1L << 31, 4095};
    int at = 16 + 4 * random.nextInt(Math.max(1, (request.length - 20) / 4));
    ByteBuffer.wrap(request)
        .order(ByteOrder.nativeOrder())
        .putLong(Math.min(at, request.length - 8), edges[random.nextInt(edges.length)]);
    return request;
  }

  private byte[] noise() {
    byte[] noise = new byte[random.nextInt(300)];
    random.nextBytes(noise);
    return random.nextBoolean() && noise.length >= 40 ? withLength(noise) : noise;
  }

  @Test
  void fileSystem_thatThrowsAnything_stillAnswersEachRequestOnce() throws Exception {
    try (KernelFixture fixture = new KernelFixture(directory, false);
        KernelSession session = fixture.session()) {
      Set<Errno> seen = EnumSet.noneOf(Errno.class);
      Set<Opcode> failed = new HashSet<>();
      findNodes(fixture);
      fixture.faulty.on().run(path -> maybeThrow());
      for (int i = 0; i < 20_000; i++) {
        Opcode opcode =
            new Opcode[] {Opcode.READ, Opcode.STATFS, Opcode.READLINK, Opcode.READDIRPLUS}
                [random.nextInt(4)];
        byte[] body = KernelMessages.read(random.nextInt(2000), 1 + random.nextInt(200_000));
        Answer answer = session.ask(opcode, nodes.get(random.nextInt(nodes.size())), body);
        assertThat(answer.length()).isEqualTo(answer.all().length);
        Errno errno = answer.errno();
        if (errno == Errno.EIO) {
          failed.add(opcode);
        }
        if (errno != null) {
          seen.add(errno);
        }
      }
      fixture.faulty.clearFaults();
      assertThat(failed).contains(Opcode.READ, Opcode.STATFS);
      assertThat(seen).contains(Errno.EIO, Errno.EACCES);
      assertThat(session.endings).hasValue(0);
      Answer healthy =
          session.ask(Opcode.READ, fixture.inode("small"), KernelMessages.read(0, 1 << 20));
      assertThat(healthy.bytes()).isEqualTo(KernelFixture.content(KernelFixture.SMALL_SIZE));
    }
  }

  private void maybeThrow() throws FsException {
    switch (random.nextInt(12)) {
      case 0 -> throw new IllegalStateException("injected");
      case 1 -> throw new StackOverflowError("injected");
      case 2 -> throw new OutOfMemoryError("injected");
      case 3 -> throw new AssertionError("injected");
      case 4 -> throw new FsException(Errno.EACCES, "injected");
      case 5 -> throw new FsException(Errno.EIO, "injected");
      default -> {}
    }
  }
}
