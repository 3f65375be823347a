package io.pmfs.it;

import io.pmfs.posix.Await;
import java.nio.file.Path;
import java.time.Duration;

/**
 * A block device whose blocks are a file's, and which can be made to fail. It takes root.
 *
 * <p>It fails by ending after its first page: the kernel answers EIO to every block beyond a
 * device's end, as the device mapper's target {@code error} does, which not every kernel has.
 */
final class LoopDevice implements AutoCloseable {
  // Of linux/loop.h: the status has lo_sizelimit in its bytes 32 to 39.
  private static final long LOOP_SET_STATUS64 = 0x4c04;
  private static final long LOOP_GET_STATUS64 = 0x4c05;
  private static final int STATUS_INTS = 232 / Integer.BYTES;
  private static final int SIZE_LIMIT = 32 / Integer.BYTES;

  private static final int PAGE_BYTES = 4096;
  private static final int ALL = 0;

  private final Path path;

  private LoopDevice(Path path) {
    this.path = path;
  }

  /** Takes a free device; {@link Machine#requireLoopDevice} says whether there is one. */
  static LoopDevice of(Path file) {
    Command attached = Command.run("losetup", "--find", "--show", file.toString()).expect(0);
    return new LoopDevice(Path.of(attached.out().strip()));
  }

  Path path() {
    return path;
  }

  /** From now on reads and writes that reach the device answer EIO. */
  void fail() {
    limit(PAGE_BYTES);
  }

  /** From now on the device answers with what it had. */
  void recover() {
    limit(ALL);
  }

  /** The kernel answers EAGAIN as long as a page of the device is being read or written. */
  private void limit(int bytes) {
    Await.until(
        "a limit of " + bytes + " bytes for " + path,
        Duration.ofSeconds(30),
        () -> {
          String outcome =
              Posix.outcome(Posix.withFile(path.toString(), Posix.O_RDWR, fd -> limit(fd, bytes)));
          if (!outcome.equals("ok") && !outcome.equals("EAGAIN")) {
            throw new AssertionError("LOOP_SET_STATUS64 of " + path + ": " + outcome);
          }
          return outcome.equals("ok");
        });
  }

  private static long limit(int fd, int bytes) {
    int[] status = new int[STATUS_INTS];
    long read = Posix.result(Posix.LIBC.ioctl(fd, LOOP_GET_STATUS64, status));
    if (read < 0) {
      return read;
    }
    status[SIZE_LIMIT] = bytes;
    status[SIZE_LIMIT + 1] = 0;
    return Posix.result(Posix.LIBC.ioctl(fd, LOOP_SET_STATUS64, status));
  }

  /** Frees the device as soon as no mount holds it any more. */
  @Override
  public void close() {
    Command.run("losetup", "--detach", path.toString());
  }
}
