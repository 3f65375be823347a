package io.pmfs.cluster.members;

import com.google.common.net.InetAddresses;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The nodes that a node expects, and those of them that are missing. It expects the hosts of a
 * list, and every member since the mount began, until the member says goodbye. Not safe for use by
 * several threads.
 */
final class RollCall {
  private static final String VERSION = "1";

  /** Limit of remembered members: a cluster whose nodes get new ids at each start has many. */
  static final int MOST = 16_384;

  private enum Presence {
    HERE,
    MISSING,
    LEFT
  }

  /** A member, with the time since which it is present, missing or gone on purpose. */
  private record Known(Member member, Presence presence, Instant since) {}

  private final List<String> hosts;
  private final Instant began;

  /** The listed hosts by their address, and by their name without its domain in lower case. */
  private final Map<String, String> byAddress = new HashMap<>();

  private final Map<String, String> byName = new HashMap<>();

  private final Set<String> own = new HashSet<>();

  private final Map<UUID, Known> known = new LinkedHashMap<>();

  /**
   * Starts with no node present.
   *
   * @param hosts the listed hosts; empty without a list
   * @param began when the mount began
   */
  RollCall(List<String> hosts, Instant began) {
    this.hosts = List.copyOf(hosts);
    this.began = began;
    for (String host : hosts) {
      if (InetAddresses.isInetAddress(host)) {
        resolved(host, InetAddresses.forString(host).getHostAddress());
      } else {
        byName.put(name(host), host);
      }
    }
  }

  private static String name(String host) {
    return LocalAddress.firstLabel(host).toLowerCase(Locale.ROOT);
  }

  void resolved(String host, String address) {
    byAddress.put(address, host);
  }

  /** Adds this node, which is present even before it is a member. */
  void isHere(String name, String address) {
    own.addAll(hostsOf(name, address));
  }

  private Set<String> hostsOf(Member member) {
    return hostsOf(member.name(), member.host());
  }

  /** The listed hosts with a member. */
  private Set<String> hostsOf(String name, String address) {
    Set<String> found = new HashSet<>();
    Optional.ofNullable(byAddress.get(address)).ifPresent(found::add);
    Optional.ofNullable(byName.get(name(name))).ifPresent(found::add);
    return found;
  }

  /** Updates the present and the departed members. Returns whether anything changed. */
  boolean look(List<Member> present, Collection<Member> farewells, Instant now) {
    boolean isNew = false;
    Map<UUID, Member> gone = new HashMap<>();
    farewells.forEach(member -> gone.put(member.id(), member));
    Set<UUID> here = present.stream().map(Member::id).collect(Collectors.toSet());
    Map<String, List<Known>> absent =
        known.keySet().containsAll(here) ? Map.of() : absentByHost(here);
    for (Member member : present) {
      Known before = known.get(member.id());
      if (before == null) {
        replaceOne(absent.getOrDefault(member.host(), List.of()));
      }
      boolean wasHere = before != null && before.presence == Presence.HERE;
      if (before == null || !wasHere || !before.member.equals(member)) {
        Instant since = before != null && wasHere ? before.since : now;
        known.put(member.id(), new Known(member, Presence.HERE, since));
        isNew = true;
      }
    }
    for (Known one : List.copyOf(known.values())) {
      Member farewell = gone.get(one.member.id());
      boolean hasLeft = farewell != null && farewell.instance() >= one.member.instance();
      if (!here.contains(one.member.id())
          && (one.presence == Presence.HERE || (one.presence == Presence.MISSING && hasLeft))) {
        Presence next = hasLeft ? Presence.LEFT : Presence.MISSING;
        known.put(one.member.id(), new Known(one.member, next, now));
        isNew = true;
      }
    }
    for (Member member : gone.values()) {
      if (!known.containsKey(member.id()) && known.size() < MOST) {
        known.put(member.id(), new Known(member, Presence.LEFT, now));
        isNew = true;
      }
    }
    forgetSurplus();
    return isNew;
  }

  private Map<String, List<Known>> absentByHost(Set<UUID> here) {
    return known.values().stream()
        .filter(one -> one.presence != Presence.HERE && !here.contains(one.member.id()))
        .sorted(Comparator.comparing(Known::since))
        .collect(
            Collectors.groupingBy(
                one -> one.member.host(), Collectors.toCollection(ArrayList::new)));
  }

  /** A node that lost its id comes back as a new member on the same host: the latest to go. */
  private void replaceOne(List<Known> absentOfHost) {
    if (!absentOfHost.isEmpty()) {
      known.remove(absentOfHost.remove(absentOfHost.size() - 1).member.id());
    }
  }

  /** Forgets members that left first, then those missing for the longest time. */
  private void forgetSurplus() {
    if (known.size() > MOST) {
      known.values().stream()
          .filter(one -> one.presence != Presence.HERE)
          .sorted(Comparator.comparing(Known::presence).reversed().thenComparing(Known::since))
          .limit(known.size() - MOST)
          .map(one -> one.member.id())
          .toList()
          .forEach(known::remove);
    }
  }

  /** Whether some member is on no listed host and some host has no member: names may differ. */
  boolean isUnclear() {
    return !hosts.isEmpty()
        && known.values().stream().anyMatch(one -> hostsOf(one.member).isEmpty())
        && !neverSeen().isEmpty();
  }

  /** The listed hosts without a member, including hosts whose member left. */
  List<String> neverSeen() {
    Set<String> seen = new HashSet<>(own);
    known.values().forEach(one -> seen.addAll(hostsOf(one.member)));
    return hosts.stream().filter(host -> !seen.contains(host)).toList();
  }

  Roll roll() {
    List<Roll.Absence> missing = new ArrayList<>();
    int here = 0;
    for (Known one : known.values()) {
      if (one.presence == Presence.MISSING) {
        String host = hostsOf(one.member).stream().sorted().findFirst().orElse(one.member.name());
        missing.add(new Roll.Absence(host, one.member.host(), one.since, true));
      } else if (one.presence == Presence.HERE) {
        here++;
      }
    }
    neverSeen().forEach(host -> missing.add(new Roll.Absence(host, null, began, false)));
    missing.sort(Comparator.comparing(Roll.Absence::node).thenComparing(Roll.Absence::since));
    return new Roll(Math.max(1, here) + missing.size(), missing);
  }

  // ---- state for the next daemon of the mount

  String text() {
    StringBuilder text = new StringBuilder(VERSION + "\t" + began.toEpochMilli() + "\n");
    for (Known one : known.values()) {
      text.append(one.presence)
          .append('\t')
          .append(one.since.toEpochMilli())
          .append('\t')
          .append(Announcement.of(one.member))
          .append('\n');
    }
    return text.toString();
  }

  /**
   * Restores the state from {@link #text}.
   *
   * @return null if the text is malformed
   */
  static @Nullable RollCall of(List<String> hosts, String text) {
    List<String> lines = text.lines().toList();
    try {
      String[] head = lines.isEmpty() ? new String[0] : lines.get(0).split("\t", -1);
      if (head.length != 2 || !head[0].equals(VERSION) || lines.size() > MOST + 1) {
        return null;
      }
      RollCall call = new RollCall(hosts, Instant.ofEpochMilli(Long.parseLong(head[1])));
      for (String line : lines.subList(1, lines.size())) {
        String[] fields = line.split("\t", 3);
        Member member = fields.length < 3 ? null : Announcement.parse(fields[2]).orElse(null);
        if (member == null) {
          return null;
        }
        Instant since = Instant.ofEpochMilli(Long.parseLong(fields[1]));
        call.known.put(member.id(), new Known(member, Presence.valueOf(fields[0]), since));
      }
      return call;
    } catch (IllegalArgumentException | DateTimeException e) {
      return null;
    }
  }
}
