package io.pmfs.pack;

import io.pmfs.compression.SeekableWriter;
import io.pmfs.compression.ZstdCodec;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.pack.SourceReader.Piece;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Executor;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.apache.commons.compress.archivers.tar.TarConstants;
import org.jspecify.annotations.Nullable;

/**
 * Writes shards, one at a time. A shard is self-contained: it includes every directory of its
 * files, so it can be extracted alone, and all shards can be extracted in any order.
 */
final class ShardWriter {
  /** Content of one zstd frame: the amount that a read of a few bytes from a shard decompresses. */
  static final int FRAME_BYTES = 256 << 10;

  private static final int COPY_BYTES = 64 << 10;

  /**
   * The result for a shard.
   *
   * @param size bytes of the file
   * @param tarSize bytes of the tar file in it
   * @param bytes of content
   * @param unreadable files that are missing in it
   */
  record Outcome(
      long size,
      long tarSize,
      String sha256,
      PackManifest.Counts counts,
      long bytes,
      List<Unreadable> unreadable) {}

  private final BackingStore source;
  private final @Nullable ZstdCodec codec;
  private final Executor readers;
  private final List<ByteBuffer> buffers;
  private final PackProgress progress;
  private final byte[] copy = new byte[COPY_BYTES];

  /**
   * A writer for one thread.
   *
   * @param codec null to write uncompressed shards
   * @param buffers direct, one for each piece that is read ahead
   */
  ShardWriter(
      BackingStore source,
      @Nullable ZstdCodec codec,
      Executor readers,
      List<ByteBuffer> buffers,
      PackProgress progress) {
    this.source = source;
    this.codec = codec;
    this.readers = readers;
    this.buffers = buffers;
    this.progress = progress;
  }

  /**
   * Writes and syncs one shard.
   *
   * @param leftOut files that are known to be unreadable
   */
  Outcome write(PlannedShard planned, Path file, Map<PlannedFile, Unreadable> leftOut)
      throws IOException, BrokenOffException, InterruptedException {
    try (ShardOutput to = new ShardOutput(file)) {
      Shard shard = new Shard(leftOut);
      long tarSize;
      try (OutputStream stream = compressed(to.stream())) {
        tarSize = shard.write(planned.files(), TarMember.stream(stream));
        if (stream instanceof SeekableWriter compressed) {
          compressed.finish();
        }
      }
      String sha256 = to.finish();
      return new Outcome(
          to.size(), tarSize, sha256, shard.counts(), shard.didBytes, shard.unreadable);
    }
  }

  private OutputStream compressed(OutputStream to) {
    return codec == null ? to : new SeekableWriter(to, codec, FRAME_BYTES);
  }

  /** A shard that is being written. */
  private final class Shard {
    private final Map<PlannedFile, Unreadable> leftOut;
    private final Set<PlannedDirectory> directories = new HashSet<>();

    /**
     * By link number: the file under its first name, once written; null if it could not be read.
     */
    private final Map<Integer, @Nullable ReadFile> links = new HashMap<>();

    private final Set<Integer> linksAhead = new HashSet<>();
    private final List<Unreadable> unreadable = new ArrayList<>();
    private final Map<Byte, Long> members = new HashMap<>();
    private long didFiles;
    private long didBytes;

    Shard(Map<PlannedFile, Unreadable> leftOut) {
      this.leftOut = leftOut;
    }

    /** Returns the size of the tar file. */
    long write(List<PlannedFile> files, TarArchiveOutputStream tar)
        throws IOException, BrokenOffException, InterruptedException {
      try (SourceReader ahead =
          new SourceReader(
              source, files.stream().filter(this::isRead).iterator(), readers, buffers)) {
        for (PlannedFile file : files) {
          progress.checkNotCancelled();
          file.directory.addWithParentsTo(directories);
          if (!file.isPlace()) {
            put(tar, file, ahead);
          }
        }
        putDirectories(tar);
        tar.finish();
        return tar.getBytesWritten();
      } catch (Throwable e) {
        progress.did(-didFiles, -didBytes);
        throw e;
      }
    }

    /** Whether a file's content is needed; called for each file in order, ahead of the writing. */
    private boolean isRead(PlannedFile file) {
      return !file.isPlace()
          && !leftOut.containsKey(file)
          && (file.link == 0 || linksAhead.add(file.link));
    }

    /**
     * After the files: tar restores the times of a directory when it extracts the directory, and
     * only once.
     */
    private void putDirectories(TarArchiveOutputStream tar) throws IOException {
      PlannedDirectory[] sorted = directories.toArray(PlannedDirectory[]::new);
      Arrays.sort(sorted, Comparator.comparingInt(directory -> directory.rank));
      for (PlannedDirectory directory : sorted) {
        begin(tar, directory.member());
        tar.closeArchiveEntry();
      }
    }

    private void put(TarArchiveOutputStream tar, PlannedFile file, SourceReader ahead)
        throws IOException, BrokenOffException, InterruptedException {
      Unreadable known = leftOut.get(file);
      if (known != null) {
        unreadable.add(known);
      } else if (file.link != 0 && links.containsKey(file.link)) {
        putLink(tar, file, links.get(file.link));
      } else {
        ReadFile written = putContent(tar, file, ahead);
        if (file.link != 0) {
          links.put(file.link, written);
        }
      }
      did(1, 0);
    }

    private void putLink(TarArchiveOutputStream tar, PlannedFile file, @Nullable ReadFile first)
        throws IOException {
      if (first == null) {
        unreadable.add(new Unreadable(file.toString(), "its other name cannot be read"));
        return;
      }
      FileName target = first.planned.path();
      begin(tar, new TarMember(file.path(), TarConstants.LF_LINK, target, first.attributes(), 0));
      tar.closeArchiveEntry();
    }

    /** Null if the file is unreadable and nothing of it is in the shard. */
    private @Nullable ReadFile putContent(
        TarArchiveOutputStream tar, PlannedFile file, SourceReader ahead)
        throws IOException, BrokenOffException, InterruptedException {
      boolean begun = false;
      while (true) {
        Piece piece = Objects.requireNonNull(ahead.next());
        FsException failure = piece.failure();
        // The first piece may be read last, and so be the one to detect that the file changed.
        boolean changed = failure != null && failure.errno() == Errno.ESTALE && !piece.isLast();
        if (failure != null && (begun || changed)) {
          throw new BrokenOffException(file, Unreadable.of(file, failure));
        }
        if (failure == null && piece.isFirst()) {
          begin(tar, member(piece.file()));
          begun = true;
        }
        if (failure != null && piece.isFirst()) {
          unreadable.add(Unreadable.of(file, failure));
        }
        if (begun) {
          copy(piece.bytes(), tar);
        }
        ahead.giveBack(piece);
        if (piece.isLast() && !begun) {
          piece.file().close();
          return null;
        }
        if (piece.isLast()) {
          tar.closeArchiveEntry();
          return piece.file();
        }
      }
    }

    private void begin(TarArchiveOutputStream tar, TarMember member) throws IOException {
      member.put(tar);
      members.merge(member.type(), 1L, Long::sum);
    }

    PackManifest.Counts counts() {
      return new PackManifest.Counts(
          count(TarConstants.LF_NORMAL),
          count(TarConstants.LF_DIR),
          count(TarConstants.LF_SYMLINK),
          count(TarConstants.LF_LINK),
          count(TarConstants.LF_FIFO) + count(TarConstants.LF_CHR) + count(TarConstants.LF_BLK));
    }

    private long count(byte type) {
      return members.getOrDefault(type, 0L);
    }

    private void copy(ByteBuffer bytes, TarArchiveOutputStream tar) throws IOException {
      bytes.flip();
      while (bytes.hasRemaining()) {
        int count = Math.min(copy.length, bytes.remaining());
        bytes.get(copy, 0, count);
        tar.write(copy, 0, count);
        did(0, count);
      }
    }

    private void did(long files, long bytes) {
      didFiles += files;
      didBytes += bytes;
      progress.did(files, bytes);
    }
  }

  private static TarMember member(ReadFile file) {
    Attributes attributes = file.attributes();
    byte type =
        switch (attributes.type()) {
          case REGULAR -> TarConstants.LF_NORMAL;
          case SYMBOLIC_LINK -> TarConstants.LF_SYMLINK;
          case FIFO -> TarConstants.LF_FIFO;
          case CHARACTER_DEVICE -> TarConstants.LF_CHR;
          case BLOCK_DEVICE -> TarConstants.LF_BLK;
          case DIRECTORY, SOCKET, UNKNOWN ->
              throw new IllegalArgumentException(file.planned.toString());
        };
    long size = type == TarConstants.LF_NORMAL ? attributes.size() : 0;
    return new TarMember(file.planned.path(), type, file.target(), attributes, size);
  }
}
