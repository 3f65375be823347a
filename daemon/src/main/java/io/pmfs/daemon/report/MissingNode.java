package io.pmfs.daemon.report;

import io.pmfs.cluster.members.Roll;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** An expected node of a cluster that the reporting node does not see. */
public record MissingNode(
    @Figure("its host, as listed or as it announced itself") String node,
    @Figure("where it answered its peers; null if it has not been present since the mount began")
        @Nullable String address,
    @Figure(
            "since when it is missing, as in ISO 8601; the start of the mount if it has not been"
                + " present since then")
        String since,
    @Figure("whether it has been present since the mount began") boolean wasHere) {
  private static final int MOST_IN_WORDS = 8;

  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss", Locale.ROOT);

  static MissingNode of(Roll.Absence absence) {
    return new MissingNode(
        absence.node(), absence.address(), absence.since().toString(), absence.wasHere());
  }

  /** A time of a report for users: local time, to the second. */
  public static String time(String iso8601) {
    try {
      return TIME.format(Instant.parse(iso8601).atZone(ZoneId.systemDefault()));
    } catch (DateTimeParseException e) {
      return iso8601;
    }
  }

  /** Whether this is the member {@code member}; nodes may disagree on who is missing. */
  boolean isOf(ClusterReport.MemberReport member) {
    return member.address().equals(address)
        || member.address().equals(node)
        || member.node().equals(node);
  }

  /** Whether both are the same node, even if only one reporter has ever seen it. */
  boolean isSame(MissingNode other) {
    return node.equals(other.node)
        && (address == null || other.address == null || address.equals(other.address));
  }

  public String sinceWhen() {
    return "since " + time(since) + (wasHere ? "" : ", the start of this mount");
  }

  /** A message about missing nodes; null if none are missing. */
  public static @Nullable String text(int expected, List<MissingNode> missing) {
    if (missing.isEmpty()) {
      return null;
    }
    int more = missing.size() - MOST_IN_WORDS;
    return String.format(
            Locale.ROOT,
            "%,d of %,d expected nodes, missing: ",
            expected - missing.size(),
            expected)
        + missing.stream()
            .limit(MOST_IN_WORDS)
            .map(one -> one.node + " " + one.sinceWhen())
            .collect(Collectors.joining("; "))
        + (more > 0 ? String.format(Locale.ROOT, "; and %,d more", more) : "");
  }
}
