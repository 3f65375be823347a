package io.pmfs.cache;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cache.CacheMessage.Kind;
import io.pmfs.cache.CacheMessage.Refusal;
import io.pmfs.fuse.system.DescriptorSocket;
import io.pmfs.fuse.system.LibC;
import io.pmfs.fuse.system.PassedFile;
import io.pmfs.posix.Await;
import io.pmfs.posix.FsException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Attacks by a client other than a mount. */
final class CacheHostilityTest {
  private static final long SEED = 20261125;
  private static final int O_PATH = 0x200000;
  private static final int O_WRONLY = 1;
  private static final LibC LIBC = LibC.INSTANCE;

  @TempDir private Path directory;

  private Path source;
  private CacheService service;
  private final List<DescriptorSocket> sockets = new ArrayList<>();

  @BeforeEach
  void start() throws IOException {
    source = Files.createDirectory(directory.resolve("source"));
    Files.writeString(source.resolve("f"), "content");
    service =
        CacheService.open(
            new CacheService.Settings(
                directory.resolve("socket"),
                directory.resolve("copies"),
                1 << 20,
                Duration.ofHours(1),
                List.of(source),
                new CacheService.Limits(8, 4, 4, 3, 64, 32, 1 << 19)),
            InstantSource.system());
  }

  @AfterEach
  void stop() throws IOException {
    sockets.forEach(DescriptorSocket::close);
    service.close();
  }

  private DescriptorSocket connect() throws FsException {
    DescriptorSocket socket =
        DescriptorSocket.connect(directory.resolve("socket"), Duration.ofSeconds(10));
    sockets.add(socket);
    return socket;
  }

  private static int open(Path path, int flags) {
    int file = LIBC.open((path + "\0").getBytes(java.nio.charset.StandardCharsets.UTF_8), flags);
    assertThat(file).isNotNegative();
    return file;
  }

  private record Answer(CacheMessage message, DescriptorSocket.Message received) {}

  private static Answer ask(DescriptorSocket socket, int file) throws FsException {
    return ask(socket, file, 1 << 20);
  }

  private static Answer ask(DescriptorSocket socket, int file, long wanted) throws FsException {
    try {
      socket.send(new CacheMessage(Kind.ASK, 1, 0, wanted).encoded(), file);
    } finally {
      LIBC.close(file);
    }
    DescriptorSocket.Message received = Objects.requireNonNull(socket.receive());
    return new Answer(Objects.requireNonNull(CacheMessage.parse(received.bytes())), received);
  }

  private static Refusal refusal(Answer answer) {
    assertThat(answer.received().file()).isNull();
    assertThat(answer.message().kind()).isEqualTo(Kind.REFUSED);
    return Refusal.of(answer.message().bytes());
  }

  private void assertWorks() throws FsException {
    Answer answer = ask(connect(), open(source.resolve("f"), 0));
    assertThat(answer.message().kind()).isEqualTo(Kind.WHOLE);
    Objects.requireNonNull(answer.received().file()).close();
  }

  @ParameterizedTest
  @CsvSource({"2097152", "1"})
  void ask_fileNotOpenForReading_isRefused(int flags) throws Exception {
    assertThat(flags).isIn(O_PATH, O_WRONLY);

    assertThat(refusal(ask(connect(), open(source.resolve("f"), flags)))).isEqualTo(Refusal.UNFIT);
    assertWorks();
  }

  @ParameterizedTest
  @CsvSource({"/proc/self/status", "/dev/null", "/sys/kernel/mm/transparent_hugepage/enabled"})
  void ask_fileOfAnotherFileSystem_isRefused(Path path) throws Exception {
    assertThat(refusal(ask(connect(), open(path, 0)))).isEqualTo(Refusal.NOT_LISTED);
    assertWorks();
  }

  @Test
  void ask_noRegularFile_isRefused() throws Exception {
    assertThat(refusal(ask(connect(), open(source, 0)))).isEqualTo(Refusal.UNFIT);
    Files.createFile(source.resolve("empty"));
    assertThat(refusal(ask(connect(), open(source.resolve("empty"), 0)))).isEqualTo(Refusal.UNFIT);
    Files.createSymbolicLink(source.resolve("link"), Path.of("f"));
    int link = open(source.resolve("link"), O_PATH | io.pmfs.fuse.system.Posix.O_NOFOLLOW);
    assertThat(refusal(ask(connect(), link))).isEqualTo(Refusal.UNFIT);
    assertWorks();
  }

  @Test
  void answer_copy_cannotBeWritten() throws Exception {
    DescriptorSocket socket = connect();
    Answer answer = ask(socket, open(source.resolve("f"), 2));
    try (PassedFile file = Objects.requireNonNull(answer.received().file())) {
      assertThat(file.isReadable()).isTrue();
      assertThat(file.isWritable()).isFalse();
      assertThat(file.status().attributes().mode() & 0777).isEqualTo(0600);
    }
  }

  @Test
  void user_isTheKernelsWord() throws Exception {
    assertWorks();

    assertThat(service.report().room().users()).containsOnlyKeys(LIBC.geteuid());
    assertThat(service.report(12345).room().users()).isEmpty();
  }

  @Test
  void randomMessages_doNoHarm() throws Exception {
    Random random = new Random(SEED);
    Kind[] kinds = Kind.values();
    for (int i = 0; i < 500; i++) {
      DescriptorSocket socket = connect();
      try {
        for (int j = 0; j < 4; j++) {
          byte[] bytes = new byte[1 + random.nextInt(100)];
          random.nextBytes(bytes);
          if (random.nextBoolean()) {
            Kind kind = kinds[random.nextInt(kinds.length)];
            bytes =
                new CacheMessage(kind, random.nextInt(9), random.nextInt(9), random.nextInt(9))
                    .encoded();
          }
          int file = random.nextBoolean() ? open(source.resolve("f"), 0) : PassedFile.NONE;
          try {
            socket.send(bytes, file);
          } finally {
            LIBC.close(file);
          }
        }
      } catch (FsException e) {
        // The connection has ended.
      } finally {
        socket.close();
      }
    }

    awaitWorking();
    assertThat(service.report().room().copies()).isEqualTo(1);
  }

  /** Recently closed connections may still count, or still be accepted. */
  private void awaitWorking() throws Exception {
    Await.until("admitted", this::isAdmitted);
    assertWorks();
  }

  private boolean isAdmitted() {
    try (DescriptorSocket socket =
        DescriptorSocket.connect(directory.resolve("socket"), Duration.ofSeconds(10))) {
      socket.send(new CacheMessage(Kind.STATUS, 1, 0, 0).encoded(), PassedFile.NONE);
      // The asking connection is not a mount.
      return socket.receive() != null && service.report().connections() == 0;
    } catch (FsException e) {
      return false;
    }
  }

  @Test
  void connections_beyondTheLimit_areClosed() throws Exception {
    for (int i = 0; i < 4; i++) {
      assertThat(ask(connect(), open(source.resolve("f"), 0)).message().kind())
          .isIn(Kind.WHOLE, Kind.GROWING);
    }
    assertThat(connect().receive()).isNull();

    sockets.forEach(DescriptorSocket::close);
    awaitWorking();
  }

  @Test
  void handles_beyondTheLimit_areRefused() throws Exception {
    DescriptorSocket socket = connect();
    for (int i = 0; i < 3; i++) {
      assertThat(ask(socket, open(source.resolve("f"), 0)).message().kind()).isEqualTo(Kind.WHOLE);
    }
    assertThat(refusal(ask(socket, open(source.resolve("f"), 0)))).isEqualTo(Refusal.LIMIT);

    socket.send(new CacheMessage(Kind.RELEASE, 9, 1, 0).encoded(), PassedFile.NONE);
    assertThat(ask(socket, open(source.resolve("f"), 0)).message().kind()).isEqualTo(Kind.WHOLE);
  }

  /** A client keeps released copies open, and changes its file while it is copied. */
  @Test
  void failedCopies_keptOpenAfterTheirRelease_takeNoRoomOfTheDisk() throws Exception {
    DescriptorSocket socket = connect();
    List<PassedFile> kept = new ArrayList<>();
    Path file = source.resolve("large");
    try {
      for (int i = 0; i < 40 && kept.size() < 8; i++) {
        Files.write(file, new byte[500_000 + i]);
        Answer answer = ask(socket, open(file, 0), 1);
        Files.setLastModifiedTime(file, FileTime.fromMillis(i));
        PassedFile copy = answer.received().file();
        if (copy != null) {
          kept.add(copy);
          long handle = answer.message().handle();
          socket.send(new CacheMessage(Kind.RELEASE, 9, handle, 0).encoded(), PassedFile.NONE);
        }
      }
      long onDisk = 0;
      for (PassedFile copy : kept) {
        onDisk += (long) Files.getAttribute(Path.of("/proc/self/fd/" + copy.descriptor()), "size");
      }
      CacheReport.Room room = service.report().room();
      assertThat(onDisk).isLessThanOrEqualTo(room.usedBytes()).isLessThanOrEqualTo(1 << 20);
      assertThat(room.usedFiles()).isGreaterThanOrEqualTo(kept.size());
      assertThat(refusal(ask(socket, open(file, 0), 1)))
          .as("too much is open")
          .isEqualTo(Refusal.LIMIT);
    } finally {
      kept.forEach(PassedFile::close);
    }
    awaitUsedFiles(1);
    assertWorks();
  }

  private void awaitUsedFiles(long most) {
    Await.until(
        () -> most + " files in use: " + service.report().toJson(),
        Await.DEADLINE,
        () -> service.report().room().usedFiles() <= most);
  }

  @Test
  void connections_tenThousand_doNotDisturbTheOnesThatThereAre() throws Exception {
    DescriptorSocket first = connect();
    assertThat(ask(first, open(source.resolve("f"), 0)).message().kind())
        .isIn(Kind.WHOLE, Kind.GROWING);
    for (int i = 0; i < 10_000; i++) {
      connect();
    }

    assertThat(ask(first, open(source.resolve("f"), 0)).message().kind()).isEqualTo(Kind.WHOLE);
    assertThat(service.report().connections()).isLessThanOrEqualTo(4);
    sockets.forEach(DescriptorSocket::close);
    sockets.clear();
    awaitWorking();
  }

  @Test
  void copyThatSomebodyDeleted_isMadeAgain() throws Exception {
    assertWorks();
    try (Stream<Path> files = Files.walk(directory.resolve("copies/copies"))) {
      for (Path file : (Iterable<Path>) files.filter(Files::isRegularFile)::iterator) {
        Files.delete(file);
      }
    }

    assertThat(refusal(ask(connect(), open(source.resolve("f"), 0)))).isEqualTo(Refusal.FAILED);
    assertWorks();
  }
}
