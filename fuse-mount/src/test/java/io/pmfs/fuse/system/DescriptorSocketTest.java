package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class DescriptorSocketTest {
  private static final byte[] HELLO = "hello".getBytes(UTF_8);

  @TempDir private Path directory;

  private DescriptorSocket listening;
  private DescriptorSocket here;
  private DescriptorSocket there;

  @BeforeEach
  void connect() throws FsException {
    Path path = directory.resolve("socket");
    listening = DescriptorSocket.listen(path, 1);
    here = DescriptorSocket.connect(path, Duration.ofSeconds(1));
    there = listening.accept(4096);
  }

  @AfterEach
  void close() {
    here.close();
    there.close();
    listening.close();
  }

  private static String text(ByteBuffer bytes) {
    return UTF_8.decode(bytes).toString();
  }

  private static long openFiles(Path path) throws IOException {
    try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
      return all.filter(one -> path.equals(target(one))).count();
    }
  }

  private static @Nullable Path target(Path link) {
    try {
      return Files.readSymbolicLink(link);
    } catch (IOException e) {
      return null; // closed meanwhile
    }
  }

  @Test
  void receive_messageWithFile_hasBothAndTheFileOpen() throws Exception {
    Path path = Files.writeString(directory.resolve("f"), "content");
    try (PassedFile file = PassedFile.open(path)) {
      here.send(HELLO, file.descriptor());
    }
    DescriptorSocket.Message message = Objects.requireNonNull(there.receive());

    assertThat(text(message.bytes())).isEqualTo("hello");
    try (PassedFile received = Objects.requireNonNull(message.file())) {
      ByteBuffer content = ByteBuffer.allocateDirect(20);
      assertThat(received.read(3, content)).isEqualTo(4);
      assertThat(text(content.flip())).isEqualTo("tent");
      assertThat(received.isReadable()).isTrue();
      assertThat(received.status().identity().device()).isEqualTo(received.device());
      assertThat(received.device()).isEqualTo(PassedFile.deviceAt(directory));
    }
  }

  @Test
  void receive_twoMessages_keepsTheirBounds() throws Exception {
    here.send(HELLO, PassedFile.NONE);
    here.offer("you".getBytes(UTF_8), null);

    DescriptorSocket.Message first = Objects.requireNonNull(there.receive());
    assertThat(first.file()).isNull();
    assertThat(text(first.bytes())).isEqualTo("hello");
    assertThat(text(Objects.requireNonNull(there.receive()).bytes())).isEqualTo("you");
  }

  @Test
  void receive_twoFilesInAMessage_failsAndKeepsNone() throws Exception {
    Path path = Files.writeString(directory.resolve("f"), "content").toRealPath();
    try (PassedFile file = PassedFile.open(path)) {
      sendTwice(file.descriptor());

      assertThatThrownBy(there::receive)
          .isInstanceOfSatisfying(
              FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EPROTO));
      assertThat(openFiles(path)).isEqualTo(1);
    }
    assertThat(openFiles(path)).isZero();
  }

  /** Only a hostile peer does this. */
  private void sendTwice(int file) {
    int control = DescriptorMessage.MESSAGE_SIZE + DescriptorMessage.VECTOR_SIZE;
    int data = control + DescriptorMessage.CONTROL_SPACE;
    Pointer message = Memory.allocateDirect(Posix.RUNTIME, data + 1, true);
    message.putAddress(
        DescriptorMessage.MESSAGE_VECTORS, message.address() + DescriptorMessage.MESSAGE_SIZE);
    message.putLongLong(DescriptorMessage.MESSAGE_VECTOR_COUNT, 1);
    message.putAddress(DescriptorMessage.MESSAGE_SIZE, message.address() + data);
    message.putLongLong(DescriptorMessage.MESSAGE_SIZE + DescriptorMessage.VECTOR_LENGTH, 1);
    message.putAddress(DescriptorMessage.MESSAGE_CONTROL, message.address() + control);
    message.putLongLong(DescriptorMessage.MESSAGE_CONTROL_LENGTH, DescriptorMessage.CONTROL_SPACE);
    message.putLongLong(control, DescriptorMessage.CONTROL_DESCRIPTOR + 2L * Integer.BYTES);
    message.putInt(control + DescriptorMessage.CONTROL_LEVEL, DescriptorMessage.SOL_SOCKET);
    message.putInt(control + DescriptorMessage.CONTROL_TYPE, DescriptorMessage.SCM_RIGHTS);
    message.putInt(control + DescriptorMessage.CONTROL_DESCRIPTOR, file);
    message.putInt(control + DescriptorMessage.CONTROL_DESCRIPTOR + Integer.BYTES, file);
    assertThat(LibC.INSTANCE.sendmsg(here.descriptor(), message, 0)).isEqualTo(1);
  }

  @Test
  void receive_otherEndCloses_isNull() throws Exception {
    here.close();

    assertThat(there.receive()).isNull();
  }

  @Test
  void receive_shutDownByAnotherThread_isNull() throws Exception {
    CompletableFuture<Boolean> ended = new CompletableFuture<>();
    DaemonThread.start(
        "receiver",
        () -> {
          try {
            ended.complete(there.receive() == null);
          } catch (FsException e) {
            ended.completeExceptionally(e);
          }
        });
    there.shutDown();

    assertThat(ended.get(30, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  void offer_nobodyReceives_failsInsteadOfWaiting() {
    assertThatThrownBy(
            () -> {
              for (int i = 0; i < 100_000; i++) {
                there.offer(HELLO, null);
              }
            })
        .isInstanceOfSatisfying(
            FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EAGAIN));
  }

  @Test
  void send_nobodyReceives_failsAfterItsLimit() {
    assertThatThrownBy(
            () -> {
              for (int i = 0; i < 100_000; i++) {
                here.send(HELLO, PassedFile.NONE);
              }
            })
        .isInstanceOfSatisfying(
            FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EAGAIN));
  }

  @Test
  void peerUser_isTheKernelsWord() throws Exception {
    assertThat(there.peerUser()).isEqualTo(LibC.INSTANCE.geteuid());
  }

  @Test
  void send_afterClose_fails() {
    here.close();

    assertThatThrownBy(() -> here.send(HELLO, PassedFile.NONE)).isInstanceOf(FsException.class);
  }
}
