package io.pmfs.cluster.members;

import com.google.common.net.InetAddresses;
import io.pmfs.metadata.PathText;
import java.util.Optional;
import java.util.UUID;

/** How a member introduces itself to the others: one line of text with tab-separated fields. */
final class Announcement {
  private static final String VERSION = "1";
  private static final int MAX_SIZE = 1_024;

  private Announcement() {}

  static String of(Member member) {
    return String.join(
        "\t",
        VERSION,
        member.id().toString(),
        Long.toHexString(member.instance()),
        member.host(),
        Integer.toString(member.port()),
        // The name is for people; control characters in it must not break the format.
        PathText.printable(member.name()));
  }

  /** Parses an announcement; empty if it is malformed, and then its sender is not a member. */
  static Optional<Member> parse(String text) {
    String[] fields = text.length() > MAX_SIZE ? new String[0] : text.split("\t", -1);
    if (fields.length != 6
        || !fields[0].equals(VERSION)
        || !InetAddresses.isInetAddress(fields[3])) {
      return Optional.empty();
    }
    try {
      int port = Integer.parseInt(fields[4]);
      return port < 1 || port > 65_535
          ? Optional.empty()
          : Optional.of(
              new Member(
                  UUID.fromString(fields[1]),
                  Long.parseUnsignedLong(fields[2], 16),
                  fields[5],
                  fields[3],
                  port));
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
  }
}
