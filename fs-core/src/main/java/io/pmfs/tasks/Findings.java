package io.pmfs.tasks;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.metadata.FileName;
import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The findings of a task about single paths, in the order they were found: the first {@value
 * #MOST}. The first {@value #IN_MEMORY} are in memory, the rest in a file; if no file can be
 * created, the rest is only counted. Thread-safe.
 */
public final class Findings implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Findings.class);

  /** The most findings that are kept. */
  public static final int MOST = 100_000;

  static final int IN_MEMORY = 1000;

  /** The file offset of every {@value}th finding is kept in memory. */
  private static final int STRIDE = 100;

  /** Longer texts are truncated. */
  private static final int MAX_TEXT_BYTES = 16 << 10;

  private static final int HEADER_BYTES = 3 * Integer.BYTES;

  private final ScratchFiles scratch;
  private final List<TaskFinding> first = new ArrayList<>(); // GUARDED_BY(this)
  private long[] places = new long[16]; // GUARDED_BY(this)
  private @Nullable FileChannel file; // GUARDED_BY(this)
  private long fileBytes; // GUARDED_BY(this)
  private int inFile; // GUARDED_BY(this)
  private boolean isFull; // GUARDED_BY(this)

  public Findings(ScratchFiles scratch) {
    this.scratch = scratch;
  }

  /** Adds a finding, unless there are too many. */
  public synchronized void add(TaskFinding finding) {
    if (isFull) {
      return;
    }
    if (first.size() < IN_MEMORY) {
      first.add(finding);
    } else {
      try {
        append(finding);
        isFull = first.size() + inFile >= MOST;
      } catch (IOException e) {
        isFull = true;
        log.warn(
            "findings beyond the first {} are counted but not listed: {}", size(), e.getMessage());
      }
    }
  }

  private void append(TaskFinding finding) throws IOException {
    FileChannel out = file;
    if (out == null) {
      out = scratch.create();
      file = out;
    }
    byte[] kind = finding.kind().name().getBytes(UTF_8);
    byte[] path = cut(finding.path().bytes());
    byte[] reason = cut(finding.reason().getBytes(UTF_8));
    ByteBuffer record =
        ByteBuffer.allocate(HEADER_BYTES + kind.length + path.length + reason.length);
    record.putInt(kind.length).putInt(path.length).putInt(reason.length);
    record.put(kind).put(path).put(reason).flip();
    long at = fileBytes;
    while (record.hasRemaining()) {
      at += out.write(record, at);
    }
    if (inFile % STRIDE == 0) {
      int index = inFile / STRIDE;
      places = index < places.length ? places : Arrays.copyOf(places, 2 * places.length);
      places[index] = fileBytes;
    }
    fileBytes = at;
    inFile++;
  }

  private static byte[] cut(byte[] text) {
    return text.length <= MAX_TEXT_BYTES ? text : Arrays.copyOf(text, MAX_TEXT_BYTES);
  }

  /** How many findings can be listed. */
  public synchronized int size() {
    return first.size() + inFile;
  }

  public synchronized List<TaskFinding> list(long from, int limit) {
    int size = size();
    int start = (int) Math.min(Math.max(0, from), size);
    int end = (int) Math.min(size, (long) start + limit);
    int inMemory = Math.min(end, first.size());
    List<TaskFinding> found =
        new ArrayList<>(start < inMemory ? first.subList(start, inMemory) : List.of());
    FileChannel in = file;
    int next = Math.max(start, first.size()) - first.size();
    if (in != null && next < end - first.size()) {
      try {
        decode(in, next, end - first.size(), found);
      } catch (IOException | RuntimeException e) {
        log.warn("findings cannot be read back: {}", String.valueOf(e.getMessage()));
      }
    }
    return found;
  }

  private void decode(FileChannel in, int from, int to, List<TaskFinding> found)
      throws IOException {
    int index = from / STRIDE * STRIDE;
    long at = places[from / STRIDE];
    for (; index < to; index++) {
      ByteBuffer header = bytes(in, at, HEADER_BYTES);
      byte[] kind = new byte[header.getInt()];
      byte[] path = new byte[header.getInt()];
      byte[] reason = new byte[header.getInt()];
      int size = kind.length + path.length + reason.length;
      at += HEADER_BYTES;
      if (index >= from) {
        bytes(in, at, size).get(kind).get(path).get(reason);
        TaskFinding.Kind known = TaskFinding.Kind.valueOf(new String(kind, UTF_8));
        found.add(new TaskFinding(FileName.of(path), known, new String(reason, UTF_8)));
      }
      at += size;
    }
  }

  private static ByteBuffer bytes(FileChannel in, long at, int size) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(size);
    while (bytes.hasRemaining()) {
      if (in.read(bytes, at + bytes.position()) < 0) {
        throw new BufferUnderflowException();
      }
    }
    return bytes.flip();
  }

  /** Discards all findings. */
  @Override
  public synchronized void close() {
    isFull = true;
    first.clear();
    inFile = 0;
    try {
      if (file != null) {
        file.close();
      }
    } catch (IOException e) {
      log.debug("findings: {}", e.getMessage());
    }
    file = null;
  }
}
