package io.pmfs.cluster.members;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.metadata.PathText;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Parses lists of the hosts whose daemons look for each other: names or addresses, as people and
 * Slurm write them. A malformed list causes an IllegalArgumentException whose one-line message
 * gives the position.
 */
public final class NodeList {
  /** The most nodes that Slurm allows in a cluster. */
  static final int MAX_NODES = 65_536;

  /** The size of a full list in which each name is as long as DNS allows. */
  private static final int MAX_FILE_BYTES = MAX_NODES * 256;

  private NodeList() {}

  /** The hosts of {@code a,b,c}, each once. */
  public static List<String> ofCommas(String text) {
    Set<String> hosts = new LinkedHashSet<>();
    int start = 0;
    for (String part : text.split(",", -1)) {
      String host = part.strip();
      if (host.isEmpty()) {
        throw new IllegalArgumentException("node list: empty entry at character " + (start + 1));
      }
      add(host, "character " + (start + 1), hosts);
      start += part.length() + 1;
    }
    return List.copyOf(hosts);
  }

  /** The hosts of a file: one per line; blank lines and text after a # are ignored. */
  public static List<String> ofFile(Path file) {
    Set<String> hosts = new LinkedHashSet<>();
    int number = 0;
    for (String line : text(file).split("\n", -1)) {
      number++;
      int comment = line.indexOf('#');
      String host = (comment < 0 ? line : line.substring(0, comment)).strip();
      if (!host.isEmpty()) {
        add(host, file + ", line " + number, hosts);
      }
    }
    if (hosts.isEmpty()) {
      throw new IllegalArgumentException(file + ": node list: names no host");
    }
    return List.copyOf(hosts);
  }

  private static String text(Path file) {
    byte[] bytes;
    try (InputStream in = Files.newInputStream(file)) {
      bytes = in.readNBytes(MAX_FILE_BYTES + 1);
    } catch (IOException e) {
      throw new IllegalArgumentException(file + ": node list: cannot be read: " + e, e);
    }
    if (bytes.length > MAX_FILE_BYTES) {
      throw new IllegalArgumentException(
          file + ": node list: has more than " + MAX_FILE_BYTES + " bytes");
    }
    try {
      return UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    } catch (CharacterCodingException e) {
      throw new IllegalArgumentException(file + ": node list: is not UTF-8 text", e);
    }
  }

  /**
   * The hosts of a list as Slurm writes it, {@code node[001-003,7],other,rack[1-2]n[01-04]x}; the
   * last bracket varies fastest. See "hostlist expressions" in scontrol(1).
   */
  public static List<String> ofSlurm(String text) {
    Set<String> hosts = new LinkedHashSet<>();
    int at = 0;
    while (at <= text.length()) {
      int end = endOfEntry(text, at);
      if (text.substring(at, end).isBlank()) {
        throw new IllegalArgumentException("node list: empty entry at character " + (at + 1));
      }
      for (String host : expand(text, at, end)) {
        add(host, "character " + (at + 1), hosts);
      }
      at = end + 1;
    }
    return List.copyOf(hosts);
  }

  /** The position of the next comma outside brackets, or the end. */
  private static int endOfEntry(String text, int start) {
    int opened = -1;
    for (int i = start; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '[') {
        if (opened >= 0) {
          throw at(i, "a [ within another");
        }
        opened = i;
      } else if (c == ']') {
        if (opened < 0) {
          throw at(i, "a ] without a [");
        }
        opened = -1;
      } else if (c == ',' && opened < 0) {
        return i;
      }
    }
    if (opened >= 0) {
      throw at(opened, "a [ without a ]");
    }
    return text.length();
  }

  private static List<String> expand(String text, int start, int end) {
    List<String> hosts = List.of("");
    int at = start;
    while (at < end) {
      int open = text.indexOf('[', at);
      if (open < 0 || open >= end) {
        return product(hosts, List.of(text.substring(at, end)), at);
      }
      int close = text.indexOf(']', open);
      hosts = product(hosts, List.of(text.substring(at, open)), at);
      hosts = product(hosts, numbers(text, open + 1, close), open);
      at = close + 1;
    }
    return hosts;
  }

  private static List<String> product(List<String> heads, List<String> tails, int position) {
    if ((long) heads.size() * tails.size() > MAX_NODES) {
      throw at(position, "more than " + MAX_NODES + " hosts");
    }
    List<String> joined = new ArrayList<>(heads.size() * tails.size());
    for (String head : heads) {
      for (String tail : tails) {
        joined.add(head + tail);
      }
    }
    return joined;
  }

  /** Expands the numbers and ranges in a bracket, padded to the width of the range's lower end. */
  private static List<String> numbers(String text, int start, int end) {
    List<String> numbers = new ArrayList<>();
    int at = start;
    for (String range : text.substring(start, end).split(",", -1)) {
      int dash = range.indexOf('-');
      String low = dash < 0 ? range : range.substring(0, dash);
      int first = number(low, at);
      int last = dash < 0 ? first : number(range.substring(dash + 1), at + dash + 1);
      if (last < first) {
        throw at(at, "a range that runs backwards");
      }
      if (last - first >= MAX_NODES - numbers.size()) {
        throw at(at, "more than " + MAX_NODES + " hosts");
      }
      for (int i = first; i <= last; i++) {
        String digits = Integer.toString(i);
        numbers.add("0".repeat(Math.max(0, low.length() - digits.length())) + digits);
      }
      at += range.length() + 1;
    }
    return numbers;
  }

  private static int number(String digits, int position) {
    // Nine digits always fit an int.
    if (digits.isEmpty()
        || digits.length() > 9
        || !digits.chars().allMatch(c -> c >= '0' && c <= '9')) {
      throw at(position, "a number of one to nine digits is expected");
    }
    return Integer.parseInt(digits);
  }

  /** Checks the characters of a host (a name, or an address without a port) and adds it. */
  private static void add(String host, String where, Set<String> hosts) {
    if (host.length() > 255 || !host.matches("[A-Za-z0-9_.:%-]+") || host.startsWith("-")) {
      String shown = host.length() > 60 ? host.substring(0, 60) + "..." : host;
      throw new IllegalArgumentException(
          where + ": '" + PathText.printable(shown) + "' is not a host name or address");
    }
    hosts.add(host);
    if (hosts.size() > MAX_NODES) {
      throw new IllegalArgumentException(where + ": more than " + MAX_NODES + " hosts");
    }
  }

  private static IllegalArgumentException at(int position, String what) {
    return new IllegalArgumentException("node list: " + what + " at character " + (position + 1));
  }
}
