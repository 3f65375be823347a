package io.pmfs.settings;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.tomlj.Toml;
import org.tomlj.TomlArray;
import org.tomlj.TomlParseError;
import org.tomlj.TomlParseResult;
import org.tomlj.TomlPosition;
import org.tomlj.TomlTable;

/**
 * One TOML file: keys at the top apply to all mounts, keys in {@code [mount."/mnt/dataset"]} to one
 * mount point.
 *
 * @param common options for all mounts
 * @param mounts options by mount point
 */
public record ConfigurationFile(
    Map<MountOption<?>, Setting> common, Map<Path, Map<MountOption<?>, Setting>> mounts) {

  private static final String SECTION = "mount";
  private static final long MAX_BYTES = 1 << 20;

  static ConfigurationFile load(Path path) throws MountFailure {
    String text;
    try {
      if (Files.size(path) > MAX_BYTES) {
        throw MountFailure.usage(path + ": larger than 1 MiB; not a configuration file");
      }
      text = Files.readString(path, UTF_8);
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.USAGE, path + ": configuration cannot be read: " + Reason.of(e), e);
    }
    return parse(path, text);
  }

  public static ConfigurationFile parse(Path path, String text) throws MountFailure {
    TomlParseResult toml = Toml.parse(text);
    if (toml.hasErrors()) {
      TomlParseError first = toml.errors().get(0);
      throw MountFailure.usage(at(path, first.position()) + ": " + first.getMessage());
    }
    return new Reader(path, toml).parse();
  }

  private static String at(Path path, @Nullable TomlPosition position) {
    return position == null ? path.toString() : path + ":" + position.line();
  }

  /** Walks the parsed file, recording each value's line. */
  private record Reader(Path path, TomlParseResult toml) {
    ConfigurationFile parse() throws MountFailure {
      Map<Path, Map<MountOption<?>, Setting>> mounts = new LinkedHashMap<>();
      Object section = toml.get(List.of(SECTION));
      if (section instanceof TomlTable table) {
        for (String mountpoint : table.keySet()) {
          readMount(table, mountpoint, mounts);
        }
      } else if (section != null) {
        throw MountFailure.usage(
            where(List.of(SECTION)) + ": 'mount' is a section; write [mount.\"/mnt/dataset\"]");
      }
      return new ConfigurationFile(options(toml, List.of()), mounts);
    }

    private void readMount(
        TomlTable table, String mountpoint, Map<Path, Map<MountOption<?>, Setting>> mounts)
        throws MountFailure {
      List<String> key = List.of(SECTION, mountpoint);
      if (!mountpoint.startsWith("/") || !(table.get(List.of(mountpoint)) instanceof TomlTable t)) {
        throw MountFailure.usage(
            "%s: '%s' is not a mount point; write [mount.\"/mnt/dataset\"] with an absolute path"
                .formatted(where(key), mountpoint));
      }
      mounts.put(Path.of(mountpoint).normalize(), options(t, key));
    }

    private Map<MountOption<?>, Setting> options(TomlTable table, List<String> parents)
        throws MountFailure {
      Map<MountOption<?>, Setting> options = new TreeMap<>();
      for (String name : table.keySet()) {
        if (parents.isEmpty() && name.equals(SECTION)) {
          continue;
        }
        List<String> key = new ArrayList<>(parents);
        key.add(name);
        MountOption<?> option = option(name, key);
        Setting setting =
            new Setting(values(option, table.get(List.of(name)), key), origin(key, parents));
        requireAbsolute(option, setting, key);
        options.put(option, setting);
      }
      return options;
    }

    private MountOption<?> option(String name, List<String> key) throws MountFailure {
      MountOption<?> option = MountOption.ofKey(name);
      if (option == null) {
        String nearest = NearestName.to(name, MountOption.keys());
        throw MountFailure.usage(
            "%s: unknown key '%s'; %s"
                .formatted(
                    where(key),
                    name,
                    nearest == null
                        ? "the keys are " + String.join(", ", MountOption.keys())
                        : "did you mean '" + nearest + "'?"));
      }
      if (!option.isForFiles()) {
        throw MountFailure.usage(
            "%s: '%s' cannot be set in a file; use %s or %s"
                .formatted(where(key), name, option.commandLineName(), option.variable()));
      }
      if (option.kind() == MountOption.Kind.ARGUMENT && key.size() == 1) {
        throw MountFailure.usage(
            "%s: '%s' belongs to one mount; put it in a section [mount.\"/mnt/…\"]"
                .formatted(where(key), name));
      }
      return option;
    }

    private List<String> values(MountOption<?> option, @Nullable Object value, List<String> key)
        throws MountFailure {
      if (value instanceof String || value instanceof Long || value instanceof Boolean) {
        return List.of(value.toString());
      }
      if (value instanceof TomlArray array && option.kind() == MountOption.Kind.LIST) {
        List<String> texts = new ArrayList<>();
        for (Object element : array.toList()) {
          if (!(element instanceof String text)) {
            throw MountFailure.usage(
                where(key) + ": '" + option.key() + "' takes strings such as \"ssd:/local/pmfs\"");
          }
          texts.add(text);
        }
        return texts;
      }
      throw MountFailure.usage(
          "%s: '%s' takes %s"
              .formatted(
                  where(key),
                  option.key(),
                  option.kind() == MountOption.Kind.LIST ? "a string or a list" : "one value"));
    }

    /** Rejects a relative path, because a file does not define its base directory. */
    private void requireAbsolute(MountOption<?> option, Setting setting, List<String> key)
        throws MountFailure {
      for (String value : setting.values()) {
        boolean isRelative =
            option.pathsIn(value).stream()
                .anyMatch(path -> !path.startsWith("/") && !path.startsWith("~/"));
        if (isRelative) {
          throw MountFailure.usage(
              "%s: '%s': a path in this file must be absolute".formatted(where(key), value));
        }
      }
    }

    private String origin(List<String> key, List<String> parents) {
      return where(key) + (parents.isEmpty() ? "" : " [mount.\"" + parents.get(1) + "\"]");
    }

    private String where(List<String> key) {
      return at(path, toml.inputPositionOf(key));
    }
  }
}
