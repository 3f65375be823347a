package io.pmfs.cluster;

import com.google.common.net.InetAddresses;
import java.util.Optional;
import java.util.UUID;

/** A member as it introduces itself to the others: one line of text, fields apart by tabs. */
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
        // The name is for people; it must not end the line.
        member.name().replaceAll("\\p{Cntrl}", "?"));
  }

  /** Nothing if it is not one: whoever sent it is not a member then. */
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
