package io.pmfs.writable.tree;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Decoder;
import io.pmfs.writable.journal.Encoder;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Extended attributes: those of the source, with the changes over them. Thread-safe. */
@SuppressWarnings("try")
public final class Extended {
  private static final FileName CAPABILITIES = FileName.of("security.capability");
  private static final String SECURITY = "security.";
  private static final List<String> SPACES = List.of("user.", "trusted.", SECURITY);
  private static final int REMEMBERED = 4096;

  /** Sequence number for changes of a file without a name, which the source will never have. */
  private static final long STAYS = Long.MAX_VALUE;

  private final State state;
  private final SourceTree tree;
  private final OutputCalls calls;

  /** The source's attributes as last seen, with the changes made there since. */
  private final Cache<Long, Map<FileName, byte[]>> remembered =
      CacheBuilder.newBuilder().maximumSize(REMEMBERED).build();

  /** A look from before a change is no answer after it. */
  private record Key(long number, long change) {}

  /** A changed attribute: null if it was removed. */
  private record Row(long change, @Nullable FileName value) {
    byte[] encode() {
      Encoder out = new Encoder().number(change);
      FileName bytes = value;
      return (bytes == null ? out.number(0) : out.number(1).name(bytes)).toBytes();
    }

    static Row decode(byte[] stored) {
      Decoder in = new Decoder(stored);
      return new Row(in.number(), in.number() == 0 ? null : in.name());
    }
  }

  public Extended(State state, SourceTree tree) {
    this.state = state;
    this.tree = tree;
    this.calls = tree.calls();
  }

  /** All attributes of a node; the last known ones if the source does not answer. */
  public Map<FileName, byte[]> of(long number) throws FsException {
    return of(number, () -> known(number));
  }

  private Map<FileName, byte[]> of(long number, SourceLooks.Known<Map<FileName, byte[]>> known)
      throws FsException {
    Inode inode = state.inode(number);
    if (!inode.hasHome()) {
      return ofStill(number);
    }
    Map<FileName, byte[]> looked =
        tree.looks()
            .ask(new Key(number, inode.change()), () -> tree.still(() -> ofStill(number)), known);
    return with(rowsNow(number), looked);
  }

  /**
   * One attribute of a node; null if it does not exist. Some are requested by the kernel before
   * each write or exec; these count as absent if only an unreachable source knows them.
   */
  public byte @Nullable [] of(long number, FileName name) throws FsException {
    if (!name.toString().startsWith(SECURITY)) {
      return of(number).get(name);
    }
    return of(
            number,
            () -> {
              Map<FileName, byte[]> last = known(number);
              return last == null ? Map.of() : last;
            })
        .get(name);
  }

  private @Nullable Map<FileName, byte[]> known(long number) throws FsException {
    try (State.Held held = state.hold()) {
      Map<FileName, byte[]> last = remembered.getIfPresent(number);
      return last == null ? null : with(rowsNow(number), last);
    }
  }

  private Map<FileName, Row> rowsNow(long number) throws FsException {
    return state.inode(number).is(Inode.XATTRS) ? rows(state, number) : Map.of();
  }

  private Map<FileName, byte[]> ofStill(long number) throws FsException {
    // Before the look at the source: what leaves the tables meanwhile is found there.
    State.Progress then = state.progress();
    Map<FileName, Row> changed = rowsNow(number);
    Map<FileName, byte[]> there = atSource(number);
    remember(number, there, then);
    return with(changed, there);
  }

  private void remember(long number, Map<FileName, byte[]> there, State.Progress then)
      throws FsException {
    try (State.Held held = state.hold()) {
      Inode inode = state.find(number);
      if (inode != null && !state.isBusy(inode, then)) {
        remembered.put(number, there);
      }
    }
  }

  private static Map<FileName, byte[]> with(
      Map<FileName, Row> changed, Map<FileName, byte[]> there) {
    Map<FileName, byte[]> all = new LinkedHashMap<>(there);
    changed.forEach(
        (name, row) -> {
          if (row.value() == null) {
            all.remove(name);
          } else {
            all.put(name, row.value().bytes());
          }
        });
    return all;
  }

  /** The source's attributes. The caller makes sure that no name is moving there. */
  public Map<FileName, byte[]> atSource(long number) throws FsException {
    Inode inode = tree.atHome(state.inode(number));
    if (!inode.hasHome()) {
      return Map.of();
    }
    try (SourceTree.Directory directory = tree.openNow(inode.homeParent());
        SourceTree.Directory node = directory.node(inode.homeName())) {
      boolean isShown = inode.mayBe(node.status(Inode.NO_NAME));
      return isShown ? calls.extendedAttributes(node.file()) : Map.of();
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
      return Map.of();
    }
  }

  private static Map<FileName, Row> rows(State state, long number) throws FsException {
    Map<FileName, Row> rows = new HashMap<>();
    state.scanGroup(
        Tables.XATTRS,
        Tables.key(number),
        (key, value) -> {
          if (Tables.first(key) != number) {
            return false;
          }
          rows.put(Tables.nameIn(key, Long.BYTES), Row.decode(value));
          return true;
        });
    return rows;
  }

  /** Attributes that were set and not removed. */
  public Map<FileName, byte[]> changed(long number) throws FsException {
    Map<FileName, byte[]> set = new LinkedHashMap<>();
    rows(state, number)
        .forEach(
            (name, row) -> {
              if (row.value() != null) {
                set.put(name, row.value().bytes());
              }
            });
    return set;
  }

  /** Sets an attribute, or removes it if the value is null. */
  public void set(long number, FileName name, byte @Nullable [] value, int flags, Caller caller)
      throws FsException {
    checkName(name.toString());
    if (state.result(caller.unique()) != null) {
      return;
    }
    state.inode(number).protection().requireChangeable(name.toString());
    Map<FileName, byte[]> looked = of(number);
    FileName stored = value == null ? null : FileName.of(value);
    try (State.Held held = state.hold()) {
      byte[] there = with(rowsNow(number), looked).get(name);
      checkFlags(name, there != null, value != null, flags);
      if (value != null && Arrays.equals(there, value)) {
        return;
      }
      Inode inode = state.inode(number);
      State.Update update = state.update();
      long sequence = inode.is(Inode.ANNOUNCED) && !inode.isRemoved() ? update.nextSequence() : 0;
      Inode next =
          inode
              .withFlag(Inode.XATTRS, true)
              .withTimes(inode.attributes().modificationTime(), state.now());
      update.put(sequence == 0 ? next : next.withChange(sequence));
      long change = sequence == 0 && inode.is(Inode.ANNOUNCED) ? STAYS : sequence;
      update.put(Tables.XATTRS, Tables.key(number, name), new Row(change, stored).encode());
      if (sequence != 0) {
        update.journal(
            new Change.SetExtended(caller.head(sequence, number, state.millis()), name, stored));
      }
      update.result(caller.unique(), number);
      update.commit();
    }
  }

  private static void checkFlags(FileName name, boolean isThere, boolean isSet, int flags)
      throws FsException {
    if (isThere && (flags & OutputCalls.XATTR_CREATE) != 0) {
      throw new FsException(Errno.EEXIST, name.toString());
    }
    if (!isThere && (!isSet || (flags & OutputCalls.XATTR_REPLACE) != 0)) {
      throw new FsException(Errno.ENODATA, name.toString());
    }
  }

  /** Removes capabilities of an executable that were set but are not at the source yet. */
  public void dropCapabilities(long number, Caller caller) throws FsException {
    if (changed(number).containsKey(CAPABILITIES)) {
      set(number, CAPABILITIES, null, 0, caller.unasked());
    }
  }

  /** Without access control lists, which the mount could not apply. */
  public static void checkName(String name) throws FsException {
    for (String space : SPACES) {
      if (name.equals(space) || name.indexOf('\0') >= 0) {
        throw new FsException(Errno.EINVAL, name);
      }
      if (name.startsWith(space)) {
        return;
      }
    }
    throw new FsException(Errno.EOPNOTSUPP, name);
  }

  /** Remembers the attributes of a node that is still in use, before the source loses it. */
  public void keep(State.Update update, long number, Map<FileName, byte[]> atSource)
      throws FsException {
    Inode inode = update.find(number);
    if (inode == null || inode.is(Inode.FORGOTTEN) || atSource.isEmpty()) {
      return;
    }
    Map<FileName, Row> known = inode.is(Inode.XATTRS) ? rows(state, number) : Map.of();
    atSource.forEach(
        (name, value) -> {
          if (!known.containsKey(name)) {
            Row row = new Row(STAYS, FileName.of(value));
            update.put(Tables.XATTRS, Tables.key(number, name), row.encode());
          }
        });
    update.put(inode.withFlag(Inode.XATTRS, true));
  }

  /**
   * The source has all changes of a node's attributes up to this one: forgets them, unless the
   * source is about to lose the node.
   */
  public void committed(State.Update update, long number, long sequence) throws FsException {
    Inode inode = update.find(number);
    if (inode == null || inode.isRemoved()) {
      return;
    }
    boolean isLeft = false;
    Map<FileName, Row> made = new HashMap<>();
    for (Map.Entry<FileName, Row> row : rows(state, number).entrySet()) {
      if (row.getValue().change() <= sequence) {
        update.delete(Tables.XATTRS, Tables.key(number, row.getKey()));
        made.put(row.getKey(), row.getValue());
      } else {
        isLeft = true;
      }
    }
    if (!isLeft) {
      update.put(inode.withFlag(Inode.XATTRS, false));
    }
    update.afterwards(
        () -> remembered.asMap().computeIfPresent(number, (key, last) -> with(made, last)));
  }

  public static void remove(State state, State.Update update, Inode inode) throws FsException {
    if (inode.is(Inode.XATTRS)) {
      for (FileName name : rows(state, inode.number()).keySet()) {
        update.delete(Tables.XATTRS, Tables.key(inode.number(), name));
      }
    }
  }

  public static byte[] encode(Map<FileName, byte[]> attributes) {
    Encoder out = new Encoder().number(attributes.size());
    attributes.forEach((name, value) -> out.name(name).bytes(value));
    return out.toBytes();
  }

  public static Map<FileName, byte[]> decode(byte[] stored) {
    Decoder in = new Decoder(stored);
    Map<FileName, byte[]> attributes = new LinkedHashMap<>();
    for (long left = in.number(); left > 0; left--) {
      FileName name = in.name();
      attributes.put(name, in.bytes());
    }
    return attributes;
  }
}
