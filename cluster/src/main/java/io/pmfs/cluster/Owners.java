package io.pmfs.cluster;

import io.pmfs.metadata.FileName;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Who owns what by the latest view, and who did by those before: they may hold copies still. Safe
 * for use by many threads.
 */
final class Owners {
  /** Earlier views that are remembered. */
  private static final int MOST_FORMER = 4;

  /** An earlier view that did not help so often in a row is forgotten. */
  private static final int MOST_MISSES = 64;

  private final UUID self;
  private final int replicas;
  private volatile Tables tables = new Tables(null, List.of());

  /** The owners by the latest view, null before the first one, and those by earlier ones. */
  private record Tables(@Nullable Table now, List<Table> former) {}

  private static final class Table {
    private final View view;
    private final Ownership ownership;
    private final AtomicInteger misses = new AtomicInteger();

    Table(View view, int replicas) {
      this.view = view;
      this.ownership = new Ownership(view, replicas);
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
    Table now = tables.now;
    if (now != null && now.view.equals(view)) {
      return;
    }
    List<Table> former = new ArrayList<>(tables.former);
    if (now != null) {
      former.add(0, now);
    }
    former.removeIf(table -> table.misses.get() >= MOST_MISSES);
    tables =
        new Tables(
            view.members().isEmpty() ? null : new Table(view, replicas),
            List.copyOf(former.subList(0, Math.min(MOST_FORMER, former.size()))));
  }

  /** The owners of a path, best first; none before there was a view. */
  List<Member> of(FileName path) {
    Table now = tables.now;
    return now == null ? List.of() : now.ownership.owners(path);
  }

  /** Whether this node is among the owners of a path; so it is before there was a view. */
  boolean isOwn(FileName path) {
    Table now = tables.now;
    return now == null || now.ownership.owners(path).stream().anyMatch(this::isSelf);
  }

  /** The fraction of all files of which a member is the first owner, 0 to 1. */
  double share(Member member) {
    Table now = tables.now;
    return now == null ? 0 : now.ownership.share(member.id());
  }

  boolean isSelf(Member member) {
    return member.id().equals(self);
  }

  /** Asks who owned a path before. */
  interface FormerOwner {
    /** Whether that node gave what it was asked for. */
    boolean ask(Member member);
  }

  /**
   * Asks those who owned a path first by earlier views and are there still, until one has it. Says
   * whether one did.
   */
  boolean askFormer(FileName path, FormerOwner question) {
    Tables known = tables;
    Table now = known.now;
    if (now == null) {
      return false;
    }
    List<UUID> asked = new ArrayList<>(List.of(self));
    for (Table table : known.former) {
      if (table.misses.get() < MOST_MISSES) {
        Member owner = now.view.find(table.ownership.owners(path).get(0).id());
        if (owner != null && !asked.contains(owner.id())) {
          asked.add(owner.id());
          if (question.ask(owner)) {
            table.misses.set(0);
            return true;
          }
          table.misses.incrementAndGet();
        }
      }
    }
    return false;
  }
}
