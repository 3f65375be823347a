package io.pmfs.settings;

import io.pmfs.cluster.members.ClusterSecret;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.places.NotOwnException;
import io.pmfs.places.OwnPath;
import io.pmfs.places.Surroundings;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The options of one mount, parsed on request. Every error names the option and its origin. */
public final class OptionValues {
  private final Map<MountOption<?>, Setting> settings;
  private final Surroundings surroundings;

  /**
   * Whether a session continues, which resolved files, links and the environment when it started.
   */
  private final boolean isResumed;

  private final @Nullable ClusterSecret keptSecret;

  private OptionValues(
      Map<MountOption<?>, Setting> settings,
      Surroundings surroundings,
      boolean isResumed,
      @Nullable ClusterSecret keptSecret) {
    this.settings = settings;
    this.surroundings = surroundings;
    this.isResumed = isResumed;
    this.keptSecret = keptSecret;
  }

  public OptionValues(Map<MountOption<?>, Setting> settings, Surroundings surroundings) {
    this(settings, surroundings, false, null);
  }

  /**
   * The options of a session that continues: resolves no symbolic links, and reads neither the
   * environment nor files. *
   *
   * @param secret the cluster's secret; null if there is none
   */
  static OptionValues resumed(
      Map<MountOption<?>, Setting> settings,
      @Nullable ClusterSecret secret,
      Surroundings surroundings) {
    return new OptionValues(settings, surroundings, true, secret);
  }

  Surroundings surroundings() {
    return surroundings;
  }

  boolean isResumed() {
    return isResumed;
  }

  /** The secret of a resumed session's cluster; null if there is none. */
  @Nullable ClusterSecret keptSecret() {
    return keptSecret;
  }

  boolean has(MountOption<?> option) {
    return settings.containsKey(option);
  }

  boolean isOnCommandLine(MountOption<?> option) {
    Setting setting = settings.get(option);
    return setting != null && setting.origin().equals(Configuration.COMMAND_LINE);
  }

  /** The texts as written; empty if there are none. */
  List<String> texts(MountOption<?> option) {
    Setting setting = settings.get(option);
    return setting == null ? List.of() : setting.values();
  }

  /** The value of an option that must have one. */
  <T> T get(MountOption<T> option) throws MountFailure {
    List<String> texts = texts(option);
    if (option.kind() != MountOption.Kind.LIST && (texts.isEmpty() || texts.get(0).isEmpty())) {
      throw MountFailure.usage(option.commandLineName() + ": no value given");
    }
    return naming(option, () -> option.parse(texts, surroundings));
  }

  /** The value of an option; null without one. */
  <T> @Nullable T find(MountOption<T> option) throws MountFailure {
    return has(option) ? get(option) : null;
  }

  /** The path of a place of pmfs, without symbolic links; null if the option has no value. */
  @Nullable
  public Path findOwnPlace(MountOption<Path> option) throws MountFailure {
    Path path = find(option);
    return path == null ? null : ownPlaceOf(option, path);
  }

  /**
   * The path of a place of pmfs, without symbolic links; fails if another user created or could
   * change it.
   *
   * @param option the option that named it
   */
  Path ownPlaceOf(MountOption<?> option, Path path) throws MountFailure {
    try {
      return isResumed ? path : OwnPath.ofProcess().resolve(path);
    } catch (NotOwnException e) {
      throw new MountFailure(
          ExitStatus.USAGE,
          "%s: %s; choose another %s".formatted(path, Reason.of(e), option.commandLineName()),
          e);
    }
  }

  /** A path without symbolic links; null if the option has no value. */
  @Nullable Path findPlace(MountOption<Path> option) throws MountFailure {
    Path path = find(option);
    return path == null ? null : placeOf(path);
  }

  Path placeOf(Path path) {
    return isResumed ? path : surroundings.resolveLinks(path);
  }

  /**
   * The source without symbolic links. If other users may enter the mount, no link may belong to
   * another user: docs/decisions/0050.
   */
  Path sourcePlace() throws MountFailure {
    Path path = get(MountOption.SOURCE);
    boolean isForOthers = surroundings.isRoot() || get(MountOption.ALLOW_OTHER);
    if (isResumed || !isForOthers) {
      return placeOf(path);
    }
    try {
      return OwnPath.of(surroundings).resolve(path);
    } catch (NotOwnException e) {
      throw new MountFailure(
          ExitStatus.USAGE,
          "%s: source: %s, who may change where a symbolic link leads; name the directory itself: %s"
              .formatted(path, Reason.of(e), placeOf(path)),
          e);
    }
  }

  /** Runs an action that depends on an option's value; errors name the option. */
  <T> T naming(MountOption<?> option, Supplier<T> action) throws MountFailure {
    try {
      return action.get();
    } catch (IllegalArgumentException e) {
      Setting setting = settings.get(option);
      String origin =
          setting == null || isOnCommandLine(option) ? "" : " (from " + setting.origin() + ")";
      boolean isArgument = option.kind() == MountOption.Kind.ARGUMENT;
      String name = isArgument ? option.key() : option.commandLineName();
      throw new MountFailure(ExitStatus.USAGE, name + origin + ": " + e.getMessage(), e);
    }
  }
}
