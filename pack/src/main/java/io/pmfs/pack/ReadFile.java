package io.pmfs.pack;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import io.pmfs.source.SourceFile;
import java.nio.ByteBuffer;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * One file of the source that several threads read in pieces. The first reader opens it; it is
 * closed after the last piece. All pieces are of one version, which has the planned size.
 */
final class ReadFile {
  private static final FileName NONE = FileName.of("");

  final PlannedFile planned;
  private final BackingStore source;
  private final int pieces;

  // GUARDED_BY(this)
  private int piecesLeft;
  private @Nullable SourceFile opened;
  private @Nullable Attributes attributes;

  /** Why a piece could not be read; then no further piece is read. */
  private @Nullable FsException failure;

  private FileName target = NONE;

  ReadFile(BackingStore source, PlannedFile planned, int pieces) {
    this.source = source;
    this.planned = planned;
    this.pieces = pieces;
    this.piecesLeft = pieces;
  }

  synchronized Attributes attributes() {
    return Objects.requireNonNull(attributes, "not read yet");
  }

  /** The target of a symbolic link; else empty. */
  synchronized FileName target() {
    return target;
  }

  boolean isRegular() {
    return planned.type() == FileType.REGULAR;
  }

  /** Reads one piece. Retries a failed read once, if that is possible. */
  void read(long offset, ByteBuffer buffer) throws FsException {
    if (pieces == 1) {
      twice(() -> readWhole(buffer));
      return;
    }
    try {
      readPiece(offset, buffer);
    } catch (FsException e) {
      fail(e);
      throw e;
    }
  }

  private void readPiece(long offset, ByteBuffer buffer) throws FsException {
    twice(this::open);
    SourceFile file = open();
    twice(() -> fill(file, offset, buffer));
    finish(file);
  }

  private void readWhole(ByteBuffer buffer) throws FsException {
    close();
    if (isRegular()) {
      SourceFile file = open();
      fill(file, 0, buffer);
      finish(file);
    } else {
      lookAt();
    }
  }

  private void fill(SourceFile file, long offset, ByteBuffer buffer) throws FsException {
    buffer.rewind();
    if (file.read(offset, buffer) < buffer.limit()) {
      throw changed("is shorter than when it was listed");
    }
  }

  private interface Attempt {
    void run() throws FsException;
  }

  private static void twice(Attempt attempt) throws FsException {
    try {
      attempt.run();
    } catch (FsException e) {
      attempt.run();
    }
  }

  private synchronized void lookAt() throws FsException {
    FileName path = planned.path();
    Attributes now = source.status(path).attributes();
    if (now.type() != planned.type()) {
      throw changed("changed its type while it was packed");
    }
    attributes = now;
    if (now.type() == FileType.SYMBOLIC_LINK) {
      target = source.readSymbolicLink(path);
    }
  }

  private synchronized SourceFile open() throws FsException {
    if (failure != null) {
      throw failure;
    }
    SourceFile file = opened;
    if (file == null) {
      file = source.open(planned.path());
      opened = file;
      attributes = null;
    }
    if (attributes == null) {
      attributes = file.status().attributes();
    }
    if (attributes.type() != FileType.REGULAR || attributes.size() != planned.size) {
      close();
      throw changed("has another size or type than when it was listed");
    }
    return file;
  }

  private synchronized void fail(FsException e) {
    failure = failure == null ? e : failure;
  }

  /** After the last piece: checks that all pieces were read from one version. */
  private synchronized void finish(SourceFile file) throws FsException {
    if (--piecesLeft > 0) {
      return;
    }
    if (!file.status().attributes().version().equals(attributes().version())) {
      piecesLeft = 1;
      throw changed("changed while it was packed");
    }
    close();
  }

  /** Closes the file; a later reader opens it again. No thread may be reading it. */
  synchronized void close() {
    if (opened != null) {
      opened.close();
      opened = null;
    }
  }

  private FsException changed(String how) {
    return new FsException(Errno.ESTALE, planned + ": " + how);
  }
}
