package io.pmfs.cluster;

import com.google.common.base.Suppliers;
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
 * Who owns what by the latest view, and who else may hold a copy: those who owned it by earlier
 * views, and who would if this node had not come. Safe for use by many threads.
 */
final class Owners {
  /** Earlier views that are remembered. */
  private static final int MOST_FORMER = 4;

  /** Owners of one kind that did not help so often in a row are not asked any more. */
  private static final int MOST_MISSES = 64;

  private final UUID self;
  private final int replicas;
  private volatile Tables tables = new Tables(null, List.of(), List.of());

  /**
   * By the latest view, null before the first one, and by earlier ones.
   *
   * @param holders those to ask in turn for copies
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
   * Nobody's yet.
   *
   * @param self this node's id
   * @param replicas how many nodes own a file, at least 1
   */
  Owners(UUID self, int replicas) {
    this.self = self;
    this.replicas = replicas;
  }

  /** Goes by another view from now on. By one thread at a time. */
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

  /** The other owners of now, those of earlier views, and those without this node. */
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

  /** The owners of a path, best first; none before there was a view. */
  List<Member> of(FileName path) {
    Table now = tables.now;
    return now == null ? List.of() : now.owners(path);
  }

  /** Whether this node is among the owners of a path; so it is before there was a view. */
  boolean isOwn(FileName path) {
    Table now = tables.now;
    return now == null || now.owners(path).stream().anyMatch(this::isSelf);
  }

  /** The fraction of all files of which a member is the first owner, 0 to 1. */
  double share(Member member) {
    Table now = tables.now;
    return now == null ? 0 : now.ownership.get().share(member.id());
  }

  boolean isSelf(Member member) {
    return member.id().equals(self);
  }

  /** What became of asking a node for a copy. */
  enum Help {
    GAVE,
    HAS_NONE,
    /** It was not asked, or gave no answer: whether it has one is not known. */
    UNKNOWN
  }

  /** Asks who may hold a copy. */
  interface Holder {
    Help ask(Member member);
  }

  /**
   * Asks those who may hold a copy of a file and are there still, until one has it. Says whether
   * one did.
   */
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
