package io.pmfs.cluster.server;

import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceStatus;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.UUID;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Answers peers from this node's tiers and the source. Every call may wait for the source, without
 * a limit. Thread-safe.
 */
public interface PeerService {
  /** Passes on the names and attributes of a directory, in batches and in listing order. */
  void list(FileName directory, Consumer<List<SourceEntry>> batches)
      throws FsException, PeerException;

  SourceStatus status(FileName path) throws FsException, PeerException;

  FileName readSymbolicLink(FileName path) throws FsException, PeerException;

  Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException, PeerException;

  /**
   * Opens a regular file for one request; the result need not be closed.
   *
   * @param expected the version the peer knows; null for the one that this node knows
   * @param onlyCopies whether to read from the tiers only
   * @param asker the asking node, if it keeps copies
   * @throws PeerException of kind OTHER_VERSION if this node has another version; REFUSED if it has
   *     no copy, and either does not own the file or may read from the tiers only
   */
  Content open(
      FileName path, @Nullable SourceVersion expected, boolean onlyCopies, @Nullable UUID asker)
      throws FsException, PeerException;

  /**
   * The blocks of a large file that this node has. Never waits.
   *
   * @param asker the asking node, if it keeps copies
   * @throws PeerException of kind REFUSED if this node has none and does not own the file, or has
   *     another version
   */
  default HeldBlocks blocks(
      FileName path,
      @Nullable SourceVersion expected,
      @Nullable UUID asker,
      HeldBlocks.Wanted wanted)
      throws PeerException {
    throw new PeerException(PeerException.Kind.REFUSED, path + " has no copy on this node");
  }

  interface Content {
    SourceStatus status();

    /**
     * Checks that the file is of this version, without reading it.
     *
     * @throws PeerException of kind OTHER_VERSION if it is not
     */
    void prove() throws FsException, PeerException;

    List<UUID> holders();

    /** The recorded CRC32C of a block of {@link io.pmfs.stage.formats.Blocks#SIZE}, if any. */
    OptionalInt checksum(int block);

    /**
     * Passes a range, which must lie within the file, to the sink, piece by piece.
     *
     * @throws PeerException of kind REFUSED if the copy is gone and only copies may be read; of
     *     kind OTHER_VERSION, before or after pieces were passed, if the source has another version
     */
    void copyTo(long offset, int size, ReadSink sink) throws FsException, PeerException;
  }
}
