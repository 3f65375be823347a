package io.pmfs.fuse.mounting;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.fuse.mounting.MountException.Reason;
import io.pmfs.fuse.system.LibC;
import io.pmfs.fuse.system.Posix;
import io.pmfs.posix.Errno;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import jnr.ffi.Pointer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Mounts and unmounts for a process that is not permitted to: asks its supervisor, which runs as
 * root, over two pipes. A request and each argument end with NUL, an answer is a line; see
 * scripts/pmfs-for-user.
 */
public final class Mounter {
  private static final Logger log = LoggerFactory.getLogger(Mounter.class);

  private static final LibC LIBC = LibC.INSTANCE;
  private static final int MAX_ANSWER_BYTES = 8192;

  private final int requests;
  private final int answers;

  /** Takes the descriptors of the pipe to the supervisor and of the pipe from the supervisor. */
  public Mounter(int requests, int answers) {
    this.requests = requests;
    this.answers = answers;
  }

  void mount(String source, Path mountpoint, int maxReadBytes, boolean allowOther, String access)
      throws MountException {
    ask(
        "mount",
        source,
        mountpoint.toString(),
        Integer.toString(maxReadBytes),
        Boolean.toString(allowOther),
        access);
  }

  /**
   * Binds the session with this device number, which another process of this user serves, to a new
   * mount point.
   *
   * @param place an existing mount point of the session; one that root keeps need not be accessible
   */
  public void join(Path place, String device) throws MountException {
    showing(place, file -> ask("join", device, file));
  }

  /**
   * Binds this session to a mount point of the supervisor.
   *
   * @param place an existing mount point of the session
   */
  public void keep(Path place) throws MountException {
    showing(place, file -> ask("keep", file));
  }

  private interface Request {
    void send(String file) throws MountException;
  }

  /**
   * Root does not follow paths in a user's directory. It binds a file that this process has open,
   * and checks it before the mount becomes visible.
   */
  private static void showing(Path place, Request request) throws MountException {
    int file = LIBC.open(Posix.terminated(place.toString()), Posix.O_PATH | Posix.O_CLOEXEC);
    try {
      request.send(Integer.toString(file));
    } finally {
      if (file >= 0) {
        LIBC.close(file);
      }
    }
  }

  /** Unmounts the supervisor's mount point. */
  public void endKeeping() throws MountException {
    ask("end-keeping");
  }

  void unmount(boolean lazy) throws MountException {
    ask(lazy ? "unmount-lazily" : "unmount");
  }

  /** Detaches the mount; waiting readers get an error. */
  void abort() throws MountException {
    ask("abort");
  }

  void setReadAhead(int kibibytes) {
    try {
      ask("read-ahead", Integer.toString(kibibytes));
    } catch (MountException e) {
      log.warn("read-ahead stays at the kernel's default: {}", e.getMessage());
    }
  }

  private synchronized void ask(String... words) throws MountException {
    ByteArrayOutputStream request = new ByteArrayOutputStream();
    for (String word : words) {
      request.writeBytes(Posix.terminated(word));
    }
    send(request.toByteArray());
    String answer = receive();
    if (answer.equals("busy")) {
      throw new MountException(Reason.BUSY, "busy", null);
    }
    if (!answer.equals("ok")) {
      throw new MountException(Reason.FAILED, answer.replaceFirst("^failed ", ""), null);
    }
  }

  private void send(byte[] request) throws MountException {
    ByteBuffer message = ByteBuffer.allocateDirect(16 + request.length);
    message.order(ByteOrder.nativeOrder());
    message.put(16, request);
    long address = Pointer.wrap(Posix.RUNTIME, message).address();
    int sent = 0;
    while (sent < request.length) {
      message.putLong(0, address + 16 + sent);
      message.putLong(8, request.length - sent);
      long count = LIBC.writev(requests, address, 1);
      if (count >= 0) {
        sent += (int) count;
      } else if (Posix.errno() != Errno.EINTR) {
        throw gone();
      }
    }
  }

  private String receive() throws MountException {
    ByteBuffer one = ByteBuffer.allocateDirect(1);
    long address = Pointer.wrap(Posix.RUNTIME, one).address();
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    while (line.size() < MAX_ANSWER_BYTES) {
      long count = LIBC.read(answers, address, 1);
      if (count == 1 && one.get(0) == '\n') {
        return line.toString(UTF_8);
      }
      if (count == 1) {
        line.write(one.get(0));
      } else if (count == 0 || Posix.errno() != Errno.EINTR) {
        throw gone();
      }
    }
    throw new MountException(Reason.FAILED, "the supervisor's answer is too long", null);
  }

  private static MountException gone() {
    return new MountException(
        Reason.UNAVAILABLE,
        "the supervisor, which mounts and unmounts as root, has ended; use umount(8) or"
            + " fusermount3 -u",
        null);
  }
}
