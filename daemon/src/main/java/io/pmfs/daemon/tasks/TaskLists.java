package io.pmfs.daemon.tasks;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.stream.JsonReader;
import io.pmfs.daemon.report.TaskJson;
import io.pmfs.machine.ByteSize;
import io.pmfs.machine.Reason;
import io.pmfs.tasks.PathFile;
import io.pmfs.tasks.ScratchFiles;
import io.pmfs.tasks.TaskRequest;
import java.io.IOException;
import java.io.StringReader;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.SecureRandom;
import java.util.HexFormat;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the list of paths of each task in a file while the task runs. The file is beside the state,
 * where the next daemon finds it. If it cannot be written there, it is a temporary file without a
 * name, and the next daemon cannot continue the task.
 */
public final class TaskLists {
  private static final Logger log = LoggerFactory.getLogger(TaskLists.class);

  /** The limit for such a temporary file; ImageNet's list has 70 MiB. */
  private static final long MAX_ELSEWHERE_BYTES = 256L << 20;

  /** The limit for the line of JSON before the list. */
  private static final int MAX_REQUEST_BYTES = 64 << 10;

  private final @Nullable Path directory;
  private final ScratchFiles elsewhere;

  /**
   * Keeps lists in a directory, which is created on demand.
   *
   * @param directory null if there is none
   * @param elsewhere holds lists that do not fit there
   */
  public TaskLists(@Nullable Path directory, ScratchFiles elsewhere) {
    this.directory = directory;
    this.elsewhere = elsewhere;
  }

  /** Opens a list that an earlier daemon kept. */
  PathFile open(String name) throws IOException {
    Path path = directory == null ? null : directory.resolve(name);
    if (path == null || !name.matches("[0-9a-f]{16}")) {
      throw new NoSuchFileException(name);
    }
    FileChannel file = FileChannel.open(path, StandardOpenOption.READ);
    try {
      return PathFile.open(file, path, skipRequest(file));
    } catch (IOException | RuntimeException e) {
      file.close();
      throw e;
    }
  }

  private static long skipRequest(FileChannel file) throws IOException {
    return readLine(file).getBytes(UTF_8).length + 1L;
  }

  /** Removes all lists but one: no task will use the others. */
  void keepOnly(@Nullable String name) {
    if (directory == null || !Files.isDirectory(directory)) {
      return;
    }
    try (DirectoryStream<Path> lists = Files.newDirectoryStream(directory)) {
      for (Path list : lists) {
        if (!list.getFileName().toString().equals(name)) {
          Files.deleteIfExists(list);
        }
      }
    } catch (IOException e) {
      log.warn("{}: old lists of paths cannot be removed: {}", directory, Reason.of(e));
    }
  }

  /** Starts receiving a request with its list. */
  public Upload begin() throws IOException {
    Path own = directory;
    if (own != null) {
      try {
        Files.createDirectories(own);
        byte[] name = new byte[8];
        new SecureRandom().nextBytes(name);
        Path path = own.resolve(HexFormat.of().formatHex(name));
        return new Upload(
            FileChannel.open(
                path,
                StandardOpenOption.CREATE_NEW,
                StandardOpenOption.READ,
                StandardOpenOption.WRITE),
            path);
      } catch (IOException e) {
        log.warn("{}: a list of paths is kept elsewhere: {}", own, Reason.of(e));
      }
    }
    return new Upload(elsewhere.create(), null);
  }

  private static String readLine(FileChannel file) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(MAX_REQUEST_BYTES);
    while (bytes.hasRemaining() && file.read(bytes, bytes.position()) >= 0) {
      for (int i = 0; i < bytes.position(); i++) {
        if (bytes.get(i) == '\n') {
          return new String(bytes.array(), 0, i, UTF_8);
        }
      }
    }
    throw new IllegalArgumentException("a list of paths without a task before it");
  }

  /** A request with its list, while it is being received. Used by one thread. */
  public final class Upload implements AutoCloseable {
    private FileChannel file;
    private @Nullable Path path;
    private boolean isTaken;
    private boolean isClosed;

    private Upload(FileChannel file, @Nullable Path path) {
      this.file = file;
      this.path = path;
    }

    public void write(ByteBuffer bytes) throws IOException {
      if (path != null) {
        int first = bytes.position();
        try {
          writeFully(file, bytes);
          return;
        } catch (IOException e) {
          log.warn("{}: a list of paths is kept elsewhere: {}", path, Reason.of(e));
          bytes.position(first);
          moveElsewhere();
        }
      }
      if (file.position() + bytes.remaining() > MAX_ELSEWHERE_BYTES) {
        throw new IOException(
            "it is larger than "
                + ByteSize.format(MAX_ELSEWHERE_BYTES)
                + ", and the state is full");
      }
      writeFully(file, bytes);
    }

    private void moveElsewhere() throws IOException {
      FileChannel from = file;
      long size = from.position();
      try (FileChannel failed = from) {
        FileChannel to = elsewhere.create();
        file = to;
        for (long at = 0; at < size; ) {
          at += failed.transferTo(at, Math.min(size - at, 1 << 20), to);
        }
      } finally {
        Path old = path;
        path = null;
        if (old != null) {
          Files.deleteIfExists(old);
        }
      }
    }

    private static void writeFully(FileChannel to, ByteBuffer bytes) throws IOException {
      long start = to.position();
      try {
        while (bytes.hasRemaining()) {
          to.write(bytes);
        }
      } catch (IOException e) {
        to.position(start);
        throw e;
      }
    }

    /**
     * Returns the request, whose paths are the list. The caller then owns the list's file.
     *
     * @throws IllegalArgumentException with a message fit for the user if it is incomplete
     */
    public TaskRequest end() throws IOException {
      String request = readLine(file);
      PathFile list = PathFile.open(file, path, request.getBytes(UTF_8).length + 1L);
      try (JsonReader in = new JsonReader(new StringReader(request))) {
        TaskRequest whole = TaskJson.parse(in, list);
        isTaken = true;
        return whole;
      }
    }

    /** Removes the list unless {@link #end} returned it. Idempotent. */
    @Override
    public void close() {
      if (isTaken || isClosed) {
        return;
      }
      isClosed = true;
      try {
        file.close();
        if (path != null) {
          Files.deleteIfExists(path);
        }
      } catch (IOException e) {
        log.warn("{}: cannot be removed: {}", path, Reason.of(e));
      }
    }
  }
}
