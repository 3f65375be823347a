package io.pmfs.fuse.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import jnr.ffi.LibraryLoader;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class DescriptorMessageTest {
  /** The other side. */
  public interface Sender {
    long sendmsg(int socket, Pointer message, int flags);
  }

  private static final Sender SENDER = LibraryLoader.create(Sender.class).load("c");
  private static final LibC LIBC = LibC.INSTANCE;

  @TempDir private Path directory;

  private static long send(int socket, int file, boolean withDescriptor) {
    int control = DescriptorMessage.MESSAGE_SIZE + DescriptorMessage.VECTOR_SIZE;
    int data = control + DescriptorMessage.CONTROL_SPACE;
    Pointer message = Memory.allocateDirect(Posix.RUNTIME, data + 1, true);
    message.putAddress(
        DescriptorMessage.MESSAGE_VECTORS, message.address() + DescriptorMessage.MESSAGE_SIZE);
    message.putLongLong(DescriptorMessage.MESSAGE_VECTOR_COUNT, 1);
    message.putAddress(DescriptorMessage.MESSAGE_SIZE, message.address() + data);
    message.putLongLong(DescriptorMessage.MESSAGE_SIZE + DescriptorMessage.VECTOR_LENGTH, 1);
    if (withDescriptor) {
      int length = DescriptorMessage.CONTROL_DESCRIPTOR + Integer.BYTES;
      message.putAddress(DescriptorMessage.MESSAGE_CONTROL, message.address() + control);
      message.putLongLong(DescriptorMessage.MESSAGE_CONTROL_LENGTH, length);
      message.putLongLong(control, length);
      message.putInt(control + DescriptorMessage.CONTROL_LEVEL, DescriptorMessage.SOL_SOCKET);
      message.putInt(control + DescriptorMessage.CONTROL_TYPE, DescriptorMessage.SCM_RIGHTS);
      message.putInt(control + DescriptorMessage.CONTROL_DESCRIPTOR, file);
    }
    return SENDER.sendmsg(socket, message, 0);
  }

  @Test
  void receive_descriptorSent_isAnotherOneOfTheSameFileAndClosesOnExec() throws Exception {
    Path path = Files.writeString(directory.resolve("f"), "x").toRealPath();
    int file = LIBC.open(Posix.terminated(path.toString()), Posix.O_CLOEXEC);
    int[] sockets = DescriptorMessage.sockets();
    try {
      assertThat(send(sockets[1], file, true)).isEqualTo(1);

      int received = DescriptorMessage.receive(sockets[0]);

      assertThat(received).isNotNegative().isNotEqualTo(file);
      assertThat(Files.readSymbolicLink(Path.of("/proc/self/fd/" + received))).isEqualTo(path);
      assertThat(Files.readString(Path.of("/proc/self/fdinfo/" + received)))
          .containsPattern("flags:\\s+02");
      LIBC.close(received);
    } finally {
      LIBC.close(file);
      LIBC.close(sockets[0]);
      LIBC.close(sockets[1]);
    }
  }

  @Test
  void receive_dataWithoutDescriptor_isNone() throws Exception {
    int[] sockets = DescriptorMessage.sockets();
    try {
      assertThat(send(sockets[1], 0, false)).isEqualTo(1);

      assertThat(DescriptorMessage.receive(sockets[0])).isEqualTo(-1);
    } finally {
      LIBC.close(sockets[0]);
      LIBC.close(sockets[1]);
    }
  }

  @Test
  void receive_otherEndClosed_isNone() throws Exception {
    int[] sockets = DescriptorMessage.sockets();
    LIBC.close(sockets[1]);

    assertThat(DescriptorMessage.receive(sockets[0])).isEqualTo(-1);

    LIBC.close(sockets[0]);
  }

  @Test
  void layout_isTheHeaders() throws Exception {
    List<String> expressions = new ArrayList<>();
    List<Long> ours = new ArrayList<>();
    Object[][] numbers = {
      {"sizeof(struct msghdr)", DescriptorMessage.MESSAGE_SIZE},
      {"offsetof(struct msghdr, msg_iov)", DescriptorMessage.MESSAGE_VECTORS},
      {"offsetof(struct msghdr, msg_iovlen)", DescriptorMessage.MESSAGE_VECTOR_COUNT},
      {"offsetof(struct msghdr, msg_control)", DescriptorMessage.MESSAGE_CONTROL},
      {"offsetof(struct msghdr, msg_controllen)", DescriptorMessage.MESSAGE_CONTROL_LENGTH},
      {"sizeof(struct iovec)", DescriptorMessage.VECTOR_SIZE},
      {"offsetof(struct iovec, iov_base)", 0},
      {"offsetof(struct iovec, iov_len)", DescriptorMessage.VECTOR_LENGTH},
      {"offsetof(struct cmsghdr, cmsg_len)", 0},
      {"offsetof(struct cmsghdr, cmsg_level)", DescriptorMessage.CONTROL_LEVEL},
      {"offsetof(struct cmsghdr, cmsg_type)", DescriptorMessage.CONTROL_TYPE},
      {"CMSG_LEN(0)", DescriptorMessage.CONTROL_DESCRIPTOR},
      {"CMSG_SPACE(sizeof(int))", DescriptorMessage.CONTROL_SPACE},
      {"AF_UNIX", DescriptorMessage.AF_UNIX},
      {"SOCK_STREAM", DescriptorMessage.SOCK_STREAM},
      {"SOCK_CLOEXEC", DescriptorMessage.SOCK_CLOEXEC},
      {"SOL_SOCKET", DescriptorMessage.SOL_SOCKET},
      {"SCM_RIGHTS", DescriptorMessage.SCM_RIGHTS},
      {"MSG_CMSG_CLOEXEC", DescriptorMessage.MSG_CMSG_CLOEXEC},
      {"O_CLOEXEC", Posix.O_CLOEXEC},
      {"sizeof(posix_spawn_file_actions_t) <= " + Spawn.FILE_ACTIONS_SIZE, 1},
    };
    for (Object[] number : numbers) {
      expressions.add((String) number[0]);
      ours.add(((Integer) number[1]).longValue());
    }

    assertThat(header(expressions)).containsExactlyElementsOf(ours);
  }

  /** The values of C expressions on this machine. */
  private List<Long> header(List<String> expressions) throws IOException {
    assumeTrue(hasCompiler(), "no gcc");
    StringBuilder program = new StringBuilder("#define _GNU_SOURCE\n");
    for (String header : List.of("stddef", "stdio", "fcntl", "spawn", "sys/socket", "sys/uio")) {
      program.append("#include <").append(header).append(".h>\n");
    }
    program.append("int main(void) {\n");
    expressions.forEach(
        e -> program.append("printf(\"%lld\\n\", (long long) (").append(e).append("));\n"));
    Files.writeString(directory.resolve("numbers.c"), program.append("return 0; }\n"));
    return Shell.run(directory, "gcc -o numbers numbers.c && ./numbers")
        .lines()
        .map(Long::valueOf)
        .toList();
  }

  private boolean hasCompiler() {
    try {
      Shell.run(directory, "gcc --version");
      return true;
    } catch (IOException e) {
      return false;
    }
  }
}
