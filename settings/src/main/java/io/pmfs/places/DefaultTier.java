package io.pmfs.places;

import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.Reason;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The tier if none is configured: the first of the usual places on a local disk. On clusters the
 * home directory is often on the file system that pmfs is meant to relieve.
 */
public final class DefaultTier {
  /** The choice and the place's name, such as {@code ~/.cache/pmfs}. */
  public record Choice(TierSpec tier, String place) {}

  private DefaultTier() {}

  public static Choice choose(Surroundings surroundings, MountTable mounts) throws MountFailure {
    StringBuilder rejected = new StringBuilder();
    for (Map.Entry<String, Path> place : places(surroundings).entrySet()) {
      Path path = place.getValue();
      String objection;
      try {
        path = OwnPath.ofProcess().resolve(path);
        objection = objection(path, mounts);
      } catch (NotOwnException e) {
        objection = ": " + Reason.of(e);
      }
      if (objection.isEmpty()) {
        return new Choice(new TierSpec(TierKind.SSD, path, Capacity.WHOLE_DISK), place.getKey());
      }
      rejected.append(rejected.isEmpty() ? "" : ", ").append(path).append(objection);
    }
    throw MountFailure.usage(
        "no local directory for a tier: " + rejected + "; give one with --tier ssd:PATH");
  }

  /** The usual places that exist and belong to this user. */
  public static List<TierSpec> existing(Surroundings surroundings) {
    return places(surroundings).values().stream()
        .flatMap(path -> ownDirectory(path).stream())
        .map(path -> new TierSpec(TierKind.SSD, path, Capacity.WHOLE_DISK))
        .toList();
  }

  private static Map<String, Path> places(Surroundings surroundings) {
    Map<String, Path> places = new LinkedHashMap<>();
    String own = "pmfs-" + surroundings.userName();
    put(places, surroundings, "$PMFS_CACHE_DIR", "PMFS_CACHE_DIR", "");
    put(places, surroundings, "$XDG_CACHE_HOME/pmfs", "XDG_CACHE_HOME", "pmfs");
    put(places, surroundings, "~/.cache/pmfs", "HOME", ".cache/pmfs");
    put(places, surroundings, "$TMPDIR/" + own, "TMPDIR", own);
    places.put("/var/tmp/" + own, Path.of("/var/tmp", own));
    return places;
  }

  private static void put(
      Map<String, Path> places,
      Surroundings surroundings,
      String name,
      String variable,
      String below) {
    String value = surroundings.variable(variable);
    // The XDG specification requires relative paths to be ignored.
    if (value != null && value.startsWith("/")) {
      places.put(name, Path.of(value).resolve(below).normalize());
    }
  }

  private static String objection(Path path, MountTable mounts) {
    MountTable.Mount mount = mounts.holding(path);
    if (mount == null || !mount.isLocalDisk()) {
      return " is on " + (mount == null ? "an unknown file system" : mount.type());
    }
    Path existing = nearestExisting(path);
    if (!Files.isDirectory(existing)) {
      return " is not a directory";
    }
    if (!Files.isWritable(existing)) {
      return " cannot be written";
    }
    try {
      OwnPath.ofProcess().check(path);
      return "";
    } catch (IOException e) {
      return ": " + Reason.of(e);
    }
  }

  private static Optional<Path> ownDirectory(Path path) {
    try {
      Path existing = OwnPath.ofProcess().check(path);
      return Files.isDirectory(existing) ? Optional.of(existing) : Optional.empty();
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  /** The path itself, or its nearest existing ancestor. */
  public static Path nearestExisting(Path path) {
    Path existing = path;
    while (!Files.exists(existing, LinkOption.NOFOLLOW_LINKS)) {
      Path parent = existing.getParent();
      if (parent == null) {
        break;
      }
      existing = parent;
    }
    return existing;
  }
}
