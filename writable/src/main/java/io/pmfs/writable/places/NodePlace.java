package io.pmfs.writable.places;

import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.nio.charset.StandardCharsets;
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

  private byte[] sessionKey() {
    return ("session " + node).getBytes(StandardCharsets.US_ASCII);
  }

  /** The node's present session, which is over once the node joins with another one. */
  @SuppressWarnings("try")
  void join(UUID session) throws FsException {
    try (State.Held held = state.hold()) {
      byte[] known = state.get(Tables.FACTS, sessionKey());
      long most = session.getMostSignificantBits();
      long least = session.getLeastSignificantBits();
      if (known == null || Tables.first(known) != most || Tables.second(known) != least) {
        State.Update update = state.update();
        byte[] first = Tables.key(update.newNumber());
        update.put(Tables.FACTS, sessionKey(), Tables.key(most, least, first));
        update.commit();
      }
    }
  }

  /** What an earlier session had open may be lost. In this one, programs may have cut it. */
  @Override
  public long leastSize(Inode inode) throws FsException {
    byte[] known = state.get(Tables.FACTS, sessionKey());
    long begun = Math.max(inode.generation(), state.begun(inode.number()));
    if (known == null || begun >= Tables.third(known)) {
      return 0;
    }
    return inode.is(Inode.WRITING) ? state.leastSize(inode.number()) : inode.attributes().size();
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
    DataCopy.copy(remote(id), target, from, end, before);
  }

  /** Does nothing: the node asks which of its files are obsolete. */
  @Override
  public void remove(NodeData.Id id) {}

  @Override
  public boolean hasRoom(long bytes) {
    return false;
  }
}
