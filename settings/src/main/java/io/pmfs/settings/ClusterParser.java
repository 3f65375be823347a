package io.pmfs.settings;

import io.pmfs.cluster.client.PeerTimeouts;
import io.pmfs.cluster.members.ClusterSecret;
import io.pmfs.cluster.members.NodeList;
import io.pmfs.machine.Reason;
import io.pmfs.machine.TimeSpan;
import io.pmfs.places.OwnPath;
import io.pmfs.places.Surroundings;
import io.pmfs.stage.copies.RemoteCopies;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** Parses the options of a cluster. */
final class ClusterParser {
  /** The variable that may hold the secret instead of a file. */
  static final String SECRET = "PMFS_CLUSTER_SECRET";

  /** The hosts of a Slurm job; see "OUTPUT ENVIRONMENT VARIABLES" in sbatch(1). */
  static final String SLURM_NODES = "SLURM_JOB_NODELIST";

  private ClusterParser() {}

  static String name(String text) {
    if (!text.matches("[A-Za-z0-9._-]{1,64}")) {
      throw new IllegalArgumentException(
          "'" + text + "' is not a name of 1 to 64 letters, digits, dots, dashes and underscores");
    }
    return text;
  }

  static List<String> nodes(String text) {
    return text.contains("[") ? NodeList.ofSlurm(text) : NodeList.ofCommas(text);
  }

  /** The secret in the environment; null if there is none. */
  static @Nullable ClusterSecret secret(Surroundings surroundings) {
    String text = surroundings.variable(SECRET);
    return text == null ? null : ClusterSecret.ofText(text, SECRET);
  }

  /** The secret in a file that no other user can replace. */
  static ClusterSecret secretOfFile(Path file) {
    try {
      return ClusterSecret.ofFile(OwnPath.ofProcess().file(file));
    } catch (IOException e) {
      throw new IllegalArgumentException(
          "%s: cluster secret: %s; choose another file".formatted(file, Reason.of(e)), e);
    }
  }

  static RemoteCopies remoteCopies(String text) {
    return Arrays.stream(RemoteCopies.values())
        .filter(copies -> copies.word().equals(text))
        .findFirst()
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "'"
                        + text
                        + "' is not known; choose one of "
                        + String.join(", ", remoteCopyWords())));
  }

  static String[] remoteCopyWords() {
    return Arrays.stream(RemoteCopies.values()).map(RemoteCopies::word).toArray(String[]::new);
  }

  /** The parts of a request to a peer that have time limits. */
  private enum Limit {
    CONNECT,
    FIRST_BYTE,
    STALL,
    TOTAL;

    String word() {
      return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
  }

  /** Limits such as {@code connect=1s,stall=10s}; limits not named have their defaults. */
  static PeerTimeouts timeouts(String text) {
    Map<Limit, Duration> limits = new EnumMap<>(Limit.class);
    for (String part : text.split(",", -1)) {
      String[] words = part.strip().split("=", -1);
      Limit limit =
          Stream.of(Limit.values())
              .filter(l -> words.length == 2 && l.word().equals(words[0]))
              .findFirst()
              .orElseThrow(
                  () ->
                      new IllegalArgumentException(
                          "'"
                              + part
                              + "' is not a limit; write it as connect=1s, first-byte=3s, stall=3s"
                              + " or total=60s"));
      Duration time = TimeSpan.parse(words[1]);
      if (time.isZero() || time.compareTo(Duration.ofHours(1)) > 0) {
        throw new IllegalArgumentException("'" + part + "' is not between 1ms and 1h");
      }
      if (limits.put(limit, time) != null) {
        throw new IllegalArgumentException("'" + limit.word() + "' is given twice");
      }
    }
    PeerTimeouts defaults = PeerTimeouts.DEFAULTS;
    return new PeerTimeouts(
        limits.getOrDefault(Limit.CONNECT, defaults.connect()),
        limits.getOrDefault(Limit.FIRST_BYTE, defaults.firstByte()),
        limits.getOrDefault(Limit.STALL, defaults.stall()),
        limits.getOrDefault(Limit.TOTAL, defaults.total()));
  }

  /** The paths in a comma-separated list of files. */
  static List<String> files(String text) {
    return Stream.of(text.split(",", -1)).map(String::strip).toList();
  }

  static List<Path> tls(String text, Surroundings surroundings) {
    List<String> files = files(text);
    if (files.size() != 3 || files.contains("")) {
      throw new IllegalArgumentException(
          "'" + text + "' is not three PEM files: CERTIFICATES,KEY,AUTHORITIES");
    }
    return files.stream().map(surroundings::resolve).toList();
  }
}
