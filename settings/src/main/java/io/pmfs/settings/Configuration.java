package io.pmfs.settings;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.Reason;
import io.pmfs.places.DefaultTier;
import io.pmfs.places.GivenPath;
import io.pmfs.places.OwnPath;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierSpec;
import io.pmfs.posix.DescriptorPath;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * All options of one mount and their origins. The command line overrides the environment, which
 * overrides the file's section for the mount point, then the file's common keys, then the defaults.
 *
 * @param mountpoint absolute; null for no particular mount
 * @param settings by option; options without a value are absent
 */
public record Configuration(@Nullable Path mountpoint, Map<MountOption<?>, Setting> settings) {
  static final String COMMAND_LINE = "command line";
  static final String DEFAULT = "default";

  /** The launcher's variable that resembles an option's. */
  private static final String HEAP = "PMFS_HEAP";

  /**
   * The options and arguments of the command line.
   *
   * @param options texts by option
   * @param file the argument of --config, or null
   * @param source the SOURCE argument, or null
   * @param mountpoint the MOUNTPOINT argument, or null
   */
  public record Request(
      Map<MountOption<?>, List<String>> options,
      @Nullable String file,
      @Nullable String source,
      @Nullable String mountpoint) {}

  public static Configuration resolve(Request request, Surroundings surroundings)
      throws MountFailure {
    Path mountpoint =
        request.mountpoint() == null
            ? null
            : placeOf(
                MountFailure.parsing(
                    "mount point", request.mountpoint(), text -> GivenPath.of(text, surroundings)),
                surroundings);
    Map<MountOption<?>, Setting> settings = defaults();
    ConfigurationFile file = findFile(request.file(), surroundings);
    if (file != null) {
      settings.putAll(file.common());
      settings.putAll(section(file, mountpoint, request.mountpoint(), surroundings));
    }
    settings.putAll(fromEnvironment(surroundings));
    request.options().forEach((o, values) -> settings.put(o, new Setting(values, COMMAND_LINE)));
    if (request.source() != null) {
      settings.put(MountOption.SOURCE, Setting.of(request.source(), COMMAND_LINE));
    }
    addPlaces(settings, surroundings);
    return new Configuration(mountpoint, Collections.unmodifiableMap(settings));
  }

  /**
   * The configurations of all mount points with a section in the file, then that of any other mount
   * point.
   */
  public static List<Configuration> ofAllMounts(Request request, Surroundings surroundings)
      throws MountFailure {
    List<Configuration> all = new ArrayList<>();
    all.add(resolve(request, surroundings));
    ConfigurationFile file = findFile(request.file(), surroundings);
    if (file != null) {
      for (Path mountpoint : file.mounts().keySet()) {
        all.add(
            resolve(
                new Request(request.options(), request.file(), null, mountpoint.toString()),
                surroundings));
      }
    }
    return all;
  }

  static Map<MountOption<?>, Setting> defaults() {
    Map<MountOption<?>, Setting> settings = new TreeMap<>();
    for (MountOption<?> option : MountOption.values()) {
      String text = option.defaultText();
      if (text != null) {
        settings.put(option, Setting.of(text, DEFAULT));
      }
    }
    return settings;
  }

  /** The section for the mount point as written, or without symbolic links. */
  private static Map<MountOption<?>, Setting> section(
      ConfigurationFile file,
      @Nullable Path mountpoint,
      @Nullable String asWritten,
      Surroundings surroundings) {
    if (mountpoint == null || asWritten == null) {
      return Map.of();
    }
    for (Map.Entry<Path, Map<MountOption<?>, Setting>> section : file.mounts().entrySet()) {
      if (section.getKey().equals(surroundings.resolve(asWritten))
          || surroundings.resolveLinks(section.getKey()).equals(mountpoint)) {
        return section.getValue();
      }
    }
    return Map.of();
  }

  private static Path placeOf(Path mountpoint, Surroundings surroundings) {
    return DescriptorPath.isOne(mountpoint) ? mountpoint : surroundings.resolveLinks(mountpoint);
  }

  private static @Nullable ConfigurationFile findFile(
      @Nullable String asked, Surroundings surroundings) throws MountFailure {
    String named = asked == null ? surroundings.variable("PMFS_CONFIG") : asked;
    if (named != null) {
      return load(surroundings.resolve(named), surroundings);
    }
    for (Path usual : usualFiles(surroundings)) {
      if (Files.exists(usual)) {
        return load(usual, surroundings);
      }
    }
    return null;
  }

  /** A configuration file of another user, such as the site's, is allowed, but not for root. */
  private static ConfigurationFile load(Path file, Surroundings surroundings) throws MountFailure {
    if (!surroundings.isRoot()) {
      return ConfigurationFile.load(file);
    }
    try {
      return ConfigurationFile.load(OwnPath.ofProcess().file(file));
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.USAGE,
          "%s: configuration: %s; name another with --config".formatted(file, Reason.of(e)),
          e);
    }
  }

  private static List<Path> usualFiles(Surroundings surroundings) {
    List<Path> files = new ArrayList<>();
    String configHome = surroundings.variable("XDG_CONFIG_HOME");
    String home = surroundings.variable("HOME");
    if (configHome != null && configHome.startsWith("/")) {
      files.add(Path.of(configHome, "pmfs", "pmfs.toml"));
    } else if (home != null) {
      files.add(surroundings.resolve(home).resolve(".config/pmfs/pmfs.toml"));
    }
    files.add(surroundings.root().resolve("etc/pmfs/pmfs.toml"));
    return files;
  }

  private static Map<MountOption<?>, Setting> fromEnvironment(Surroundings surroundings) {
    Map<MountOption<?>, Setting> settings = new TreeMap<>();
    for (MountOption<?> option : MountOption.options()) {
      String variable =
          option.variables().stream()
              .filter(name -> surroundings.variable(name) != null)
              .findFirst()
              .orElse(option.variable());
      String value = surroundings.variable(variable);
      if (value != null) {
        List<String> values =
            option.kind() == MountOption.Kind.LIST
                ? Arrays.stream(value.split("[\\s,]+")).filter(v -> !v.isEmpty()).toList()
                : List.of(value);
        settings.put(option, new Setting(values, "environment " + variable));
      }
    }
    return settings;
  }

  /** Adds the tier and the state directory, whose defaults depend on the machine. */
  private static void addPlaces(Map<MountOption<?>, Setting> settings, Surroundings surroundings)
      throws MountFailure {
    MountTable mounts = surroundings.mounts();
    Setting tiers = settings.get(MountOption.TIER);
    boolean hasTiers = tiers != null && !tiers.values().isEmpty();
    boolean hasCache = settings.containsKey(MountOption.NODE_CACHE);
    if (!hasTiers && !hasCache) {
      DefaultTier.Choice choice = DefaultTier.choose(surroundings, mounts);
      settings.put(
          MountOption.TIER,
          Setting.of(choice.tier().toString(), DEFAULT + ": " + choice.place() + " is local"));
    }
    if (!settings.containsKey(MountOption.STATE_DIR)) {
      Path lastLocal = null;
      boolean isOneWithoutDirectory = false;
      for (TierSpec tier : CopySettings.tiers(new OptionValues(settings, surroundings))) {
        Path directory = tier.place().directory();
        if (directory == null) {
          isOneWithoutDirectory = true;
          continue;
        }
        MountTable.Mount mount = mounts.holding(surroundings.resolveLinks(directory));
        if (mount != null && !mount.isNetwork()) {
          lastLocal = directory;
        }
      }
      if (lastLocal != null) {
        settings.put(
            MountOption.STATE_DIR,
            Setting.of(
                lastLocal.resolve("state").toString(), DEFAULT + ": in the last local tier"));
      } else if (isOneWithoutDirectory || !hasTiers) {
        putWhereATierWouldBe(settings, surroundings, mounts);
      }
    }
  }

  /** Without a directory tier, the state goes where the default tier would be. */
  private static void putWhereATierWouldBe(
      Map<MountOption<?>, Setting> settings, Surroundings surroundings, MountTable mounts) {
    try {
      DefaultTier.Choice choice = DefaultTier.choose(surroundings, mounts);
      settings.put(
          MountOption.STATE_DIR,
          Setting.of(
              choice.tier().path().resolve("state").toString(),
              DEFAULT + ": " + choice.place() + " is local, and no tier has a directory"));
    } catch (MountFailure e) {
      // No state directory; a mount that needs one reports that.
    }
  }

  /**
   * Uses the source that the kernel reports for a mount, even if the mount was moved.
   *
   * @param device the mount's device number; null if unknown: the mount point then identifies it
   */
  public Configuration withSourceOf(MountTable mounts, @Nullable String device) {
    MountTable.Mount mount =
        device != null ? mounts.of(device) : mountpoint == null ? null : mounts.at(mountpoint);
    if (mount == null || !mount.isPmfs()) {
      return this;
    }
    Map<MountOption<?>, Setting> changed = new TreeMap<>(settings);
    changed.put(MountOption.SOURCE, Setting.of(mount.source(), "the mount"));
    return new Configuration(mountpoint, Collections.unmodifiableMap(changed));
  }

  /** The typed settings; an invalid value fails with its option's name and origin. */
  public MountSettings toSettings(Surroundings surroundings) throws MountFailure {
    if (mountpoint == null) {
      throw MountFailure.usage("no MOUNTPOINT given; see pmfs mount --help");
    }
    return MountSettings.of(mountpoint, new OptionValues(settings, surroundings));
  }

  /** Parses all values, whether or not a source and a mount point are known. */
  public void validate(Surroundings surroundings) throws MountFailure {
    Map<MountOption<?>, Setting> complete = new TreeMap<>(settings);
    complete.putIfAbsent(MountOption.SOURCE, Setting.of("/", DEFAULT));
    MountSettings.of(Path.of("/"), new OptionValues(complete, surroundings));
  }

  /** The mount point and its options, each with its value and origin. */
  public JsonObject toJson() {
    JsonObject options = new JsonObject();
    settings.forEach(
        (option, setting) -> {
          JsonArray values = new JsonArray();
          setting.values().forEach(values::add);
          JsonObject one = new JsonObject();
          if (option.kind() == MountOption.Kind.LIST) {
            one.add("value", values);
          } else {
            one.addProperty("value", String.join(" ", setting.values()));
          }
          one.addProperty("from", setting.origin());
          options.add(option.key(), one);
        });
    JsonObject object = new JsonObject();
    object.addProperty("mountpoint", mountpoint == null ? null : mountpoint.toString());
    object.add("options", options);
    return object;
  }

  /** Lines for the user about variables that look like mistyped options. */
  public static List<String> suspectVariables(Surroundings surroundings) {
    List<String> known =
        MountOption.options().stream().flatMap(option -> option.variables().stream()).toList();
    List<String> lines = new ArrayList<>();
    for (String name : surroundings.environment().keySet()) {
      if (name.startsWith("PMFS_") && !known.contains(name) && !name.equals(HEAP)) {
        String nearest = NearestName.to(name, known);
        if (nearest != null && NearestName.isMeantFor(name, nearest)) {
          lines.add(name + ": unknown variable, ignored; did you mean " + nearest + "?");
        }
      }
    }
    return lines;
  }
}
