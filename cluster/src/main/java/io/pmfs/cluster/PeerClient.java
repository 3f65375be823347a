package io.pmfs.cluster;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.tier.SourceStatus;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Asks peers. Each call blocks its caller and ends within the time limits it was made with. Paths
 * are below the dataset's root; empty is the root. Safe for use by many threads.
 */
public interface PeerClient extends AutoCloseable {
  /**
   * Hands names and attributes in a directory, in the order in which it is listed, in batches, once
   * all of it has come and is what the peer says it is. A directory too large for that is refused.
   */
  void list(Member peer, FileName directory, Consumer<List<SourceEntry>> batches)
      throws PeerException;

  /** What the peer has for status(2) of a file. */
  SourceStatus status(Member peer, FileName path) throws PeerException;

  FileName readSymbolicLink(Member peer, FileName path) throws PeerException;

  Map<FileName, byte[]> extendedAttributes(Member peer, FileName path) throws PeerException;

  /**
   * Reads a range, which must lie within the file, and compares it with the checksums it came with.
   * On failure the destination holds anything; its position and limit are as before.
   *
   * @param expected the version of the file that the range is of
   * @param onlyCopies whether the peer is to ask its tiers only, not the source
   * @param destination a direct buffer, filled from its position to its limit
   * @return which file that was
   */
  SourceStatus read(
      Member peer,
      FileName path,
      SourceVersion expected,
      long offset,
      ByteBuffer destination,
      boolean onlyCopies)
      throws PeerException;

  @Override
  void close();
}
