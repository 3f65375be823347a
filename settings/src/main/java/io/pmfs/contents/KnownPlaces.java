package io.pmfs.contents;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.machine.Reason;
import io.pmfs.places.OwnPath;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierSpec;
import io.pmfs.settings.MountSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The places where mounts of this user on this machine have kept copies, however configured: a file
 * in the home directory has a line for each state directory and its tiers. {@code pmfs cache} lists
 * these places, and mounts of the same dataset read copies there. The home directory may be on a
 * file system that hangs, so no reader may wait for this.
 */
public final class KnownPlaces {
  private static final Logger log = LoggerFactory.getLogger(KnownPlaces.class);

  /** The limit, beyond which missing places are removed; if none is missing, no more are added. */
  private static final int MOST = 256;

  private static final String SEPARATOR = "\t";

  private final Surroundings surroundings;

  public KnownPlaces(Surroundings surroundings) {
    this.surroundings = surroundings;
  }

  /** A state directory and the tiers of its copies. */
  record Set(Path state, List<TierSpec> tiers) {}

  private @Nullable Path file() throws IOException {
    String states = surroundings.variable("XDG_STATE_HOME");
    String home = surroundings.variable("HOME");
    Path directory;
    if (states != null && states.startsWith("/")) {
      directory = Path.of(states);
    } else if (home != null && home.startsWith("/")) {
      directory = Path.of(home, ".local", "state");
    } else {
      return null;
    }
    String name = "places-" + surroundings.hostName();
    return OwnPath.ofProcess().replaceableFile(directory.resolve("pmfs").resolve(name));
  }

  /** Records the places of a mount; does nothing if that fails. */
  public void add(MountSettings mount) {
    Path state = mount.metadata().stateDirectory();
    if (state == null) {
      return;
    }
    String line =
        mount.copies().tiers().stream()
            .filter(tier -> tier.place().directory() != null)
            .map(TierSpec::name)
            .collect(Collectors.joining(SEPARATOR, state + SEPARATOR, ""));
    if (line.contains("\n") || line.split(SEPARATOR, -1).length != places(mount)) {
      return; // a path contains a separator
    }
    try {
      Path file = file();
      List<String> lines = file == null ? List.of() : lines(file);
      if (file == null || lines.contains(line)) {
        return;
      }
      if (lines.size() >= MOST) {
        lines =
            lines.stream()
                .filter(one -> Files.exists(Path.of(one.split(SEPARATOR, 2)[0])))
                .toList();
        Files.write(file, lines);
      }
      if (lines.size() < MOST) {
        Files.writeString(
            file, line + "\n", UTF_8, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
      }
    } catch (IOException e) {
      log.debug("cannot record the places of copies: {}", Reason.of(e));
    }
  }

  private static int places(MountSettings mount) {
    long tiers =
        mount.copies().tiers().stream().filter(tier -> tier.place().directory() != null).count();
    return (int) Math.max(1, tiers) + 1;
  }

  private static List<String> lines(Path file) throws IOException {
    return Files.exists(file) ? Files.readAllLines(file) : List.of();
  }

  /** All recorded places that exist now. */
  List<Set> all() {
    List<Set> sets = new ArrayList<>();
    try {
      Path file = file();
      for (String line : file == null ? List.<String>of() : lines(file)) {
        Set set = parse(line);
        if (set != null && Files.isDirectory(set.state())) {
          sets.add(set);
        }
      }
    } catch (IOException e) {
      log.debug("cannot read the places of copies: {}", Reason.of(e));
    }
    return sets;
  }

  private @Nullable Set parse(String line) {
    List<String> words = Arrays.asList(line.split(SEPARATOR, -1));
    try {
      List<TierSpec> tiers = new ArrayList<>();
      for (String word : words.subList(1, words.size())) {
        if (!word.isEmpty()) {
          tiers.add(TierSpec.parse(word, surroundings));
        }
      }
      Path state = Path.of(words.get(0));
      return state.isAbsolute() ? new Set(state, tiers) : null;
    } catch (IllegalArgumentException e) {
      return null;
    }
  }
}
