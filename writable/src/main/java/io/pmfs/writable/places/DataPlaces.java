package io.pmfs.writable.places;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.Place;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import io.pmfs.writable.tree.SourceTree;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The places for data files: tiers of this node, other nodes, and as a last resort a hidden
 * directory of the source. The tables record which place has a data file. Thread-safe.
 */
public final class DataPlaces implements AutoCloseable {
  /** The largest file size, in bytes. */
  public static final long MAX_SIZE = Long.MAX_VALUE - 4096;

  private static final int AT_SOURCE = 0;

  /** Prefix of a place's path in the tables if another node keeps its files. */
  private static final String NODE = "node:";

  private final OutputCalls calls;

  /** Places for new data files, the fastest first. */
  private final List<TierPlace> tiers = new ArrayList<>();

  private final Map<Integer, DataPlace> places = new ConcurrentHashMap<>();
  private final @Nullable SourcePlace atSource;
  private volatile NodeData.Nodes nodes = DataPlaces::unknownNode;

  /** The places of a mount, including earlier ones that are no longer configured. */
  public DataPlaces(List<Place> configured, State state, SourceTree tree, String mount)
      throws FsException {
    this.calls = tree.calls();
    InstantSource clock = state.clock();
    atSource = new SourcePlace(AT_SOURCE, state, tree, mount, calls);
    places.put(AT_SOURCE, atSource);
    Map<String, Integer> known = new HashMap<>();
    state.scan(
        Tables.PLACES,
        new byte[0],
        (key, value) -> {
          known.put(new String(value, StandardCharsets.UTF_8), (int) Tables.first(key));
          return true;
        });
    for (Place place : configured) {
      String path = place.directory().toString();
      Integer number = known.remove(path);
      addTier(new TierPlace(number == null ? register(state, path) : number, place, calls, clock));
    }
    known.forEach((text, number) -> places.put(number, former(number, text, state, clock)));
  }

  /** The places for data that a node keeps for a mount's owner. */
  public DataPlaces(OutputCalls calls, List<Place> configured, InstantSource clock) {
    this.calls = calls;
    this.atSource = null;
    for (Place place : configured) {
      addTier(new TierPlace(tiers.size() + 1, place, calls, clock));
    }
  }

  private void addTier(TierPlace tier) {
    tiers.add(tier);
    places.put(tier.number(), tier);
  }

  private DataPlace former(int number, String text, State state, InstantSource clock) {
    if (!text.startsWith(NODE)) {
      return new TierPlace(number, new Place(text, Path.of(text), 0, 0), calls, clock);
    }
    int end = text.indexOf(' ');
    UUID node = UUID.fromString(text.substring(NODE.length(), end));
    return new NodePlace(number, node, text.substring(end + 1), this, state);
  }

  @SuppressWarnings("try")
  private static int register(State state, String path) throws FsException {
    try (State.Held held = state.hold()) {
      long[] last = {AT_SOURCE};
      state.scan(
          Tables.PLACES,
          new byte[0],
          (key, value) -> {
            last[0] = Tables.first(key);
            return true;
          });
      State.Update update = state.update();
      update.put(Tables.PLACES, Tables.key(last[0] + 1), path.getBytes(StandardCharsets.UTF_8));
      update.commit();
      return Math.toIntExact(last[0] + 1);
    }
  }

  public OutputCalls calls() {
    return calls;
  }

  public DataPlace get(int number) throws FsException {
    DataPlace place = places.get(number);
    if (place == null) {
      throw new FsException(Errno.EIO, "no place " + number + " for data files");
    }
    return place;
  }

  /** Whether a place is at the source or on another node. */
  public boolean isElsewhere(int number) {
    DataPlace place = places.get(number);
    return place != null && place.isElsewhere();
  }

  /** The place of this node with this number. */
  LocalPlace here(int number) throws FsException {
    DataPlace place = get(number);
    if (place instanceof LocalPlace here) {
      return here;
    }
    throw new FsException(
        Errno.EIO, place.name() + " is another node, which keeps these data files");
  }

  public LocalPlace atSource() throws FsException {
    return here(AT_SOURCE);
  }

  // ---- other nodes

  /** Sets how data files of other nodes are reached. Called once. */
  public void use(NodeData.Nodes others) {
    nodes = others;
  }

  public NodeData.Nodes nodes() {
    return nodes;
  }

  private static NodeData unknownNode(UUID node, String name) throws FsException {
    throw new FsException(
        Errno.EIO, name + " keeps what was written there; mount there and here with --cluster");
  }

  /**
   * The number of the place for another node's data files.
   *
   * @param node its id, which persists
   * @param name for messages
   * @param session of its kernel
   */
  public int placeOf(UUID node, String name, UUID session, State state) throws FsException {
    synchronized (tiers) {
      NodePlace place = nodePlace(node, name, state);
      place.join(session);
      return place.number();
    }
  }

  private NodePlace nodePlace(UUID node, String name, State state) throws FsException {
    for (DataPlace place : places.values()) {
      if (place instanceof NodePlace known && known.node().equals(node)) {
        return known;
      }
    }
    int number = register(state, NODE + node + " " + name);
    NodePlace made = new NodePlace(number, node, name, this, state);
    places.put(number, made);
    return made;
  }

  // ---- room

  /** Whether the failure is a refusal: another place may take the file. */
  public static boolean isRefusal(FsException e) {
    return e.getCause() instanceof TierPlace.Refusal;
  }

  /** The first tier that probably has room for a file of this size; null if none has. */
  public @Nullable LocalPlace withRoom(long bytes) {
    for (TierPlace tier : tiers) {
      if (!tier.isAvoided() && tier.hasRoom(bytes)) {
        return tier;
      }
    }
    return null;
  }

  /**
   * The place for a file that has no data yet. It has its directory already: the next mount takes a
   * tier without for a disk that is not mounted.
   */
  public LocalPlace forNew() throws FsException {
    TierPlace full = null;
    for (TierPlace tier : tiers) {
      boolean hasRoom = !tier.isAvoided() && tier.hasRoom(0);
      if (tier.isMade()) {
        if (hasRoom) {
          return tier;
        }
        full = full == null ? tier : full;
      }
    }
    return full == null ? atSource() : full;
  }

  /** Whether a tier will have room once the source has the content; false if all disks fail. */
  public boolean mayGetRoom() {
    return tiers.stream().anyMatch(TierPlace::mayGetRoom);
  }

  public long usedBytes() {
    return places.values().stream().mapToLong(DataPlace::usedBytes).sum();
  }

  /** Removes the hidden directory of the source if it has no data file. */
  public void tidyAtSource() {
    if (atSource != null) {
      atSource.tidy();
    }
  }

  // ---- data files of earlier processes

  /** A data file that an earlier process left. */
  public interface Left {
    boolean isKnown(LocalPlace place, NodeData.Id id) throws FsException;
  }

  interface Action {
    void run() throws FsException;
  }

  /**
   * Counts the data files of earlier processes, and removes those unknown to the state.
   *
   * @param end the first generation of this process
   */
  public void count(long end, Left left) throws FsException {
    for (DataPlace place : places.values()) {
      if (place != atSource) {
        place.count(end, left);
      }
    }
    if (atSource != null) {
      atSource.count(end, left); // Last, because the source may be slow.
    }
  }

  @Override
  public void close() {
    places.values().forEach(DataPlace::close);
  }
}
