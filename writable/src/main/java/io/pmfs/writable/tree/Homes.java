package io.pmfs.writable.tree;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.util.ArrayList;
import java.util.List;

/**
 * The names of nodes at the source. A single name is stored in the node; several are in a table.
 * Call with the state's lock held and an uncommitted update.
 */
public final class Homes {
  private final State state;

  public Homes(State state) {
    this.state = state;
  }

  public List<At> all(Inode inode) throws FsException {
    List<At> homes = new ArrayList<>();
    if (inode.is(Inode.HOMES)) {
      state.scanGroup(
          Tables.HOMES,
          Tables.key(inode.number()),
          (key, value) -> {
            if (Tables.first(key) != inode.number()) {
              return false;
            }
            homes.add(new At(Tables.second(key), Tables.nameIn(key, 2 * Long.BYTES)));
            return true;
          });
    } else if (inode.hasHome()) {
      homes.add(new At(inode.homeParent(), inode.homeName()));
    }
    return homes;
  }

  public boolean has(Inode inode, long directory, FileName name) throws FsException {
    return all(inode).contains(new At(directory, name));
  }

  private static byte[] key(long number, At home) {
    return Tables.key(number, home.directory(), home.name().bytes());
  }

  public Inode add(State.Update update, Inode inode, At home) throws FsException {
    List<At> before = all(inode);
    if (before.contains(home)) {
      return inode;
    }
    if (before.isEmpty()) {
      return inode.withHome(home.directory(), home.name());
    }
    if (!inode.is(Inode.HOMES)) {
      update.put(Tables.HOMES, key(inode.number(), before.get(0)), new byte[0]);
    }
    update.put(Tables.HOMES, key(inode.number(), home), new byte[0]);
    return inode.withFlag(Inode.HOMES, true);
  }

  public Inode remove(State.Update update, Inode inode, At home) throws FsException {
    List<At> left = all(inode);
    if (!left.remove(home)) {
      return inode;
    }
    if (inode.is(Inode.HOMES)) {
      update.delete(Tables.HOMES, key(inode.number(), home));
      if (left.size() == 1) {
        update.delete(Tables.HOMES, key(inode.number(), left.get(0)));
      }
    }
    Inode next = inode.withFlag(Inode.HOMES, left.size() > 1);
    return left.isEmpty()
        ? next.withHome(0, Inode.NO_NAME)
        : next.withHome(left.get(0).directory(), left.get(0).name());
  }

  public Inode clear(State.Update update, Inode inode) throws FsException {
    if (inode.is(Inode.HOMES)) {
      for (At home : all(inode)) {
        update.delete(Tables.HOMES, key(inode.number(), home));
      }
    }
    return inode.withFlag(Inode.HOMES, false).withHome(0, Inode.NO_NAME);
  }

  public Inode move(State.Update update, Inode inode, At from, At to) throws FsException {
    if (!inode.is(Inode.HOMES)) {
      return inode.withHome(to.directory(), to.name());
    }
    update.delete(Tables.HOMES, key(inode.number(), from));
    update.put(Tables.HOMES, key(inode.number(), to), new byte[0]);
    boolean isFirst =
        inode.homeParent() == from.directory() && inode.homeName().equals(from.name());
    return isFirst ? inode.withHome(to.directory(), to.name()) : inode;
  }

  /** Records a node's state at the source, and that this identity is this node. */
  public static Inode seen(State.Update update, Inode inode, Stat stat) throws FsException {
    Stat before = inode.seen();
    if (before != null && (before.inode() != stat.inode() || before.device() != stat.device())) {
      update.deleteSource(before, inode.number());
    }
    if (inode.number() != (Nodes.SOURCE | stat.inode()) || stat.device() != 0) {
      update.put(
          Tables.SOURCES, Tables.key(stat.device(), stat.inode()), Tables.key(inode.number()));
    }
    return inode.withSeen(stat);
  }

  /** The node when it is not at the source, or its name is another program's there. */
  public static Inode unseen(State.Update update, Inode inode) throws FsException {
    Stat before = inode.seen();
    if (before != null) {
      update.deleteSource(before, inode.number());
    }
    return inode.withSeen(null);
  }
}
