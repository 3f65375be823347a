package io.pmfs.cluster.client;

import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.source.SourceStatus;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Consumer;

/**
 * Asks peers. Each call blocks its caller, at most for the client's timeouts and the caller's
 * patience, from which it deducts its time. Paths are below the dataset's root; the empty path is
 * the root. Thread-safe.
 */
public interface PeerClient extends AutoCloseable {
  /**
   * The answer to a read, apart from the bytes.
   *
   * @param status the status of the file that the range is from
   * @param holders ids of other nodes that may have a copy
   */
  record Given(SourceStatus status, List<UUID> holders) {}

  /**
   * Passes on the names and attributes of a directory, in batches and in listing order, once the
   * whole directory has arrived and matches its checksum. Refuses a directory that is too large for
   * that.
   */
  void list(Member peer, FileName directory, Consumer<List<SourceEntry>> batches, Patience patience)
      throws PeerException;

  /** The peer's result of stat(2) for a file. */
  SourceStatus status(Member peer, FileName path, Patience patience) throws PeerException;

  FileName readSymbolicLink(Member peer, FileName path, Patience patience) throws PeerException;

  Map<FileName, byte[]> extendedAttributes(Member peer, FileName path, Patience patience)
      throws PeerException;

  /**
   * Fetches a range, which must lie within the file, and compares it with the checksums that the
   * peer sent. On failure the destination's content is undefined; its position and limit are
   * unchanged.
   *
   * @param expected the version of the file that the range must be from
   * @param onlyCopies whether the peer must read from its tiers only, not from the source
   * @param destination a direct buffer, filled from its position to its limit
   */
  Given fetch(
      Member peer,
      FileName path,
      SourceVersion expected,
      long offset,
      ByteBuffer destination,
      boolean onlyCopies,
      Patience patience)
      throws PeerException;

  /**
   * The blocks of a large file that a peer has and, if it owns the file, those to read from it.
   *
   * @param wanted the blocks that this node would read next
   */
  HeldBlocks blocks(
      Member peer,
      FileName path,
      SourceVersion expected,
      HeldBlocks.Wanted wanted,
      Patience patience)
      throws PeerException;

  @Override
  void close();
}
