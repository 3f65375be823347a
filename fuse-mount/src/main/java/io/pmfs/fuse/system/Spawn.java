package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;

/**
 * A short-lived child process that receives a descriptor, which ProcessBuilder would close. It also
 * inherits descriptors that the JDK opened without close-on-exec, so do not use it for long-running
 * programs.
 */
public final class Spawn {
  /** The descriptor's number in the child. */
  public static final int GIVEN = 3;

  /** More than sizeof(posix_spawn_file_actions_t) of any C library: 80 in glibc. */
  static final int FILE_ACTIONS_SIZE = 256;

  private static final int OUTPUT_MAX = 4096;
  private static final int SIGKILL = 9;
  private static final LibC LIBC = LibC.INSTANCE;

  private final int process;
  private final int output;

  private Spawn(int process, int output) {
    this.process = process;
    this.output = output;
  }

  /**
   * Starts a program found in PATH, with this process's environment and one more variable.
   *
   * @param arguments the first is the program
   * @throws FsException ENOENT if there is no such program
   */
  public static Spawn start(List<String> arguments, String variable, int given) throws FsException {
    int[] pipe = new int[2];
    if (LIBC.pipe2(pipe, Posix.O_CLOEXEC) != 0) {
      throw new FsException(Posix.errno(), "pipe");
    }
    Pointer actions = Memory.allocateDirect(Posix.RUNTIME, FILE_ACTIONS_SIZE);
    check(LIBC.posix_spawn_file_actions_init(actions), "posix_spawn_file_actions_init");
    try {
      check(LIBC.posix_spawn_file_actions_adddup2(actions, pipe[1], 1), "dup2");
      check(LIBC.posix_spawn_file_actions_adddup2(actions, pipe[1], 2), "dup2");
      check(LIBC.posix_spawn_file_actions_adddup2(actions, given, GIVEN), "dup2");
      int[] process = new int[1];
      check(
          LIBC.posix_spawnp(
              process,
              Posix.terminated(arguments.get(0)),
              actions,
              null,
              vector(arguments.stream().map(Posix::terminated).toList()),
              vector(environment(variable))),
          arguments.get(0));
      return new Spawn(process[0], pipe[0]);
    } catch (FsException e) {
      LIBC.close(pipe[0]);
      throw e;
    } finally {
      LIBC.close(pipe[1]);
      LIBC.posix_spawn_file_actions_destroy(actions);
    }
  }

  private static void check(int errno, String what) throws FsException {
    if (errno != 0) {
      throw new FsException(Errno.of(errno), what);
    }
  }

  /** This process's environment as bytes, because the JDK decodes it with a charset. */
  private static List<byte[]> environment(String variable) throws FsException {
    List<byte[]> entries = new ArrayList<>();
    try {
      String block = new String(Files.readAllBytes(Path.of("/proc/self/environ")), ISO_8859_1);
      for (String entry : block.split("\0", -1)) {
        if (!entry.isEmpty()) {
          entries.add((entry + "\0").getBytes(ISO_8859_1));
        }
      }
    } catch (IOException e) {
      throw new FsException(Errno.EIO, "/proc/self/environ", e);
    }
    entries.add(Posix.terminated(variable));
    return entries;
  }

  /** A null-terminated array of pointers to strings, in one piece of memory. */
  private static Pointer vector(List<byte[]> strings) {
    int pointers = (strings.size() + 1) * Long.BYTES;
    int size = pointers + strings.stream().mapToInt(string -> string.length).sum();
    Pointer memory = Memory.allocateDirect(Posix.RUNTIME, size, true);
    int at = pointers;
    for (int i = 0; i < strings.size(); i++) {
      byte[] string = strings.get(i);
      memory.putAddress((long) i * Long.BYTES, memory.address() + at);
      memory.put(at, string, 0, string.length);
      at += string.length;
    }
    return memory;
  }

  /** The program's standard output and standard error until it closes them; at most 4 KiB. */
  public String output() {
    ByteArrayOutputStream collected = new ByteArrayOutputStream();
    Pointer buffer = Memory.allocateDirect(Posix.RUNTIME, OUTPUT_MAX);
    while (true) {
      long count = LIBC.read(output, buffer.address(), OUTPUT_MAX);
      if (count > 0) {
        byte[] bytes = new byte[Math.min((int) count, OUTPUT_MAX - collected.size())];
        buffer.get(0, bytes, 0, bytes.length);
        collected.write(bytes, 0, bytes.length);
      } else if (count == 0 || Posix.errno() != Errno.EINTR) {
        break;
      }
    }
    LIBC.close(output);
    return collected.toString(UTF_8);
  }

  /**
   * Waits until the child ends. Returns its exit status, or 128 plus the signal that killed it, as
   * a shell does.
   */
  public int waitFor() {
    int[] status = new int[1];
    while (LIBC.waitpid(process, status, 0) < 0) {
      if (Posix.errno() != Errno.EINTR) {
        return -1;
      }
    }
    int signal = status[0] & 0x7f;
    return signal == 0 ? status[0] >> 8 & 0xff : 128 + signal;
  }

  public void kill() {
    LIBC.kill(process, SIGKILL);
  }
}
