package io.pmfs.cluster;

import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.server.PeerService;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.source.SourceStatus;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A node that serves no dataset to its peers. */
final class NoDataset implements PeerService {
  private static PeerException refusal() {
    return new PeerException(PeerException.Kind.REFUSED, "this node serves no dataset");
  }

  @Override
  public void list(FileName directory, Consumer<List<SourceEntry>> batches) throws PeerException {
    throw refusal();
  }

  @Override
  public SourceStatus status(FileName path) throws PeerException {
    throw refusal();
  }

  @Override
  public FileName readSymbolicLink(FileName path) throws PeerException {
    throw refusal();
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) throws PeerException {
    throw refusal();
  }

  @Override
  public Content open(
      FileName path, @Nullable SourceVersion expected, boolean onlyCopies, @Nullable UUID asker)
      throws PeerException {
    throw refusal();
  }
}
