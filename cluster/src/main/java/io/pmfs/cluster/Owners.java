package io.pmfs.cluster;

import com.google.common.base.Suppliers;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.members.View;
import io.pmfs.metadata.FileName;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The owners of paths according to the latest view, and other members that may hold a copy: the
 * owners according to earlier views, and the owners as if this node had not joined. Thread-safe.
 */
final class Owners {
  private static final int MOST_FORMER = 4;

  /** After this many misses in a row, the owners of one table are not asked. */
  private static final int MOST_MISSES = 64;

  private final UUID self;
  private final int replicas;
  private volatile Tables tables = new Tables(null, List.of(), List.of());

  /**
   * Owners according to the latest view, which is null before the first one, and to earlier views.
   *
   * @param holders the tables whose owners to ask for copies, in turn
   */
  private record Tables(@Nullable Table now, List<Table> former, List<Table> holders) {}

  private static final class Table {
    private final View view;
    private final Supplier<Ownership> ownership;
    private final AtomicInteger misses = new AtomicInteger();

    Table(View view, Supplier<Ownership> ownership) {
      this.view = view;
      this.ownership = ownership;
    }

    List<Member> owners(FileName path) {
      return ownership.get().owners(path);
    }
  }

  /**
   * Starts without a view.
   *
   * @param self this node's id
   * @param replicas how many nodes own a file, at least 1
   */
  Owners(UUID self, int replicas) {
    this.self = self;
    this.replicas = replicas;
  }

  /** Adopts another view. Called by one thread at a time. */
  void change(View view) {
    Table before = tables.now;
    if (before != null && before.view.equals(view)) {
      return;
    }
    List<Table> former = new ArrayList<>(tables.former);
    if (before != null) {
      former.add(0, before);
    }
    former.removeIf(table -> table.misses.get() >= MOST_MISSES);
    former = List.copyOf(former.subList(0, Math.min(MOST_FORMER, former.size())));
    if (view.members().isEmpty()) {
      tables = new Tables(null, former, former);
      return;
    }
    Ownership ownership = new Ownership(view, replicas);
    Table now = new Table(view, () -> ownership);
    tables = new Tables(now, former, holders(now, former));
  }

  /** The other owners now, the earlier ones, and those as if this node had not joined. */
  private List<Table> holders(Table now, List<Table> former) {
    List<Table> holders = new ArrayList<>();
    if (replicas > 1) {
      holders.add(new Table(now.view, now.ownership));
    }
    holders.addAll(former);
    List<Member> others = now.view.members().stream().filter(member -> !isSelf(member)).toList();
    if (!others.isEmpty()) {
      View without = new View(others);
      holders.add(new Table(without, Suppliers.memoize(() -> new Ownership(without, replicas))));
    }
    return List.copyOf(holders);
  }

  /** The owners of a path, best first; empty before the first view. */
  List<Member> of(FileName path) {
    Table now = tables.now;
    return now == null ? List.of() : now.owners(path);
  }

  /** Whether this node is among the owners of a path; true before the first view. */
  boolean isOwn(FileName path) {
    Table now = tables.now;
    return now == null || now.owners(path).stream().anyMatch(this::isSelf);
  }

  /** The fraction of all files whose first owner is a member, 0 to 1. */
  double share(Member member) {
    Table now = tables.now;
    return now == null ? 0 : now.ownership.get().share(member.id());
  }

  /** Another member by its id; null if the latest view has no such member. */
  @Nullable Member other(UUID id) {
    Table now = tables.now;
    return now == null || id.equals(self) ? null : now.view.find(id);
  }

  boolean isSelf(Member member) {
    return member.id().equals(self);
  }

  /** The outcome of asking a node for a copy. */
  enum Help {
    GAVE,
    HAS_NONE,
    /** The node was not asked or gave no answer: whether it has a copy is unknown. */
    UNKNOWN
  }

  /** A question to a member that may hold a copy. */
  interface Holder {
    Help ask(Member member);
  }

  /** Asks the present members that may hold a copy, until one sends it; returns whether one did. */
  boolean askHolders(FileName path, Holder question) {
    Tables known = tables;
    Table now = known.now;
    if (now == null) {
      return false;
    }
    Set<UUID> asked = new HashSet<>(Set.of(self));
    for (Table table : known.holders) {
      if (table.misses.get() < MOST_MISSES) {
        boolean isMiss = false;
        for (Member owner : table.owners(path)) {
          Member there = now.view.find(owner.id());
          if (there == null || !asked.add(there.id())) {
            continue;
          }
          Help help = question.ask(there);
          if (help == Help.GAVE) {
            table.misses.set(0);
            return true;
          }
          isMiss |= help == Help.HAS_NONE;
        }
        if (isMiss) {
          table.misses.incrementAndGet();
        }
      }
    }
    return false;
  }
}
