package io.pmfs.writable.places;

import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import java.util.UUID;

/** The data files that another node of a cluster keeps. Thread-safe. */
final class NodePlace extends DataPlace {
  private final UUID node;
  private final DataPlaces places;
  private final State state;

  /**
   * The data files of a node.
   *
   * @param node its id, which persists
   * @param name for messages
   */
  NodePlace(int number, UUID node, String name, DataPlaces places, State state) {
    super(number, name);
    this.node = node;
    this.places = places;
    this.state = state;
  }

  UUID node() {
    return node;
  }

  @Override
  public boolean isOfNode() {
    return true;
  }

  @Override
  public RemoteData remote(NodeData.Id id) throws FsException {
    return new RemoteData(this, places.nodes().on(node, name()), id);
  }

  @Override
  public DataFile file(NodeData.Id id) throws FsException {
    return remote(id);
  }

  /** Whether the journal has announced what is in a data file, even if the source has it. */
  boolean isPromised(NodeData.Id id) throws FsException {
    DataRow row = state.data(id.inode(), id.generation());
    Inode inode = state.find(id.inode());
    return row == null
        || row.waiting() > 0
        || (inode != null
            && inode.generation() == id.generation()
            && Math.max(inode.announcedSize(), inode.drainedSize()) > 0);
  }

  @Override
  public long size(NodeData.Id id) throws FsException {
    return remote(id).size();
  }

  @Override
  public void copy(
      NodeData.Id id, int to, long from, long end, boolean isOver, DataCopy.Before before)
      throws FsException {
    DataCopy.Target target = (bytes, at) -> places.calls().write(to, bytes, at);
    DataCopy.requireAll(remote(id).copyTo(target, from, end, before), end);
  }

  /** Does nothing: the node asks which of its files are obsolete. */
  @Override
  public void remove(NodeData.Id id) {}

  @Override
  public boolean hasRoom(long bytes) {
    return false;
  }
}
