package io.pmfs.cluster;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.tier.FsException;
import io.pmfs.tier.ReadSink;
import io.pmfs.tier.SourceStatus;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * What this node answers its peers, from its tiers and the source. Every call may wait for the
 * source, for as long as that takes. Safe for use by many threads.
 */
public interface PeerService {
  /** Hands names and attributes in a directory, in the order in which it is listed, in batches. */
  void list(FileName directory, Consumer<List<SourceEntry>> batches)
      throws FsException, PeerException;

  SourceStatus status(FileName path) throws FsException, PeerException;

  FileName readSymbolicLink(FileName path) throws FsException, PeerException;

  Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException, PeerException;

  /**
   * Opens a regular file for one request; needs no closing.
   *
   * @param expected the version the peer knows; null for the one that this node knows
   * @param onlyCopies whether to ask the tiers only
   * @throws PeerException of kind REFUSED if this node has another version; or has no copy, and
   *     does not own the file or may ask the tiers only
   */
  Content open(FileName path, @Nullable SourceVersion expected, boolean onlyCopies)
      throws FsException, PeerException;

  /** A file that a peer reads. */
  interface Content {
    SourceStatus status();

    /** The CRC32C of a whole block of {@link io.pmfs.stage.Blocks#SIZE}, if it is recorded. */
    OptionalInt checksum(int block);

    /**
     * Passes a range, which must lie within the file, to the sink, piece by piece.
     *
     * @throws PeerException of kind REFUSED if there is no copy any more and only those may be read
     */
    void read(long offset, int size, ReadSink sink) throws FsException, PeerException;
  }
}
