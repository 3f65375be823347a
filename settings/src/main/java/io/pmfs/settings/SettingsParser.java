package io.pmfs.settings;

import io.pmfs.cluster.ClusterSecret;
import io.pmfs.cluster.NodeList;
import io.pmfs.stage.Compression;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Turns texts into typed settings; every error names the option and where its value came from. */
public final class SettingsParser {
  private static final List<String> POLICIES = List.of("none", "lru");
  private static final List<String> BRIDGES = List.of("auto", "kernel", "jnr");
  private static final List<String> READ_MODES = List.of("auto", "page-cache", "passthrough");
  private static final List<String> FORMS = List.of("auto", "directory", "tar");
  private static final List<String> LEVELS = List.of("error", "warn", "info", "debug", "trace");
  private static final long MIB = 1 << 20;
  private final Map<MountOption, Setting> settings;
  private final Surroundings surroundings;

  /** Whether all that these depended on was looked up when the session began. */
  private final boolean isResumed;

  private final @Nullable ClusterSecret kept;

  private SettingsParser(Map<MountOption, Setting> settings, Surroundings surroundings) {
    this(settings, surroundings, false, null);
  }

  private SettingsParser(
      Map<MountOption, Setting> settings,
      Surroundings surroundings,
      boolean isResumed,
      @Nullable ClusterSecret kept) {
    this.settings = settings;
    this.surroundings = surroundings;
    this.isResumed = isResumed;
    this.kept = kept;
  }

  static MountSettings parse(Configuration configuration, Surroundings surroundings)
      throws MountFailure {
    Path mountpoint = configuration.mountpoint();
    if (mountpoint == null) {
      throw MountFailure.usage("no MOUNTPOINT given; see pmfs mount --help");
    }
    return new SettingsParser(configuration.settings(), surroundings).parse(mountpoint);
  }

  /**
   * The settings of a session that goes on: its paths are taken as they are, whatever their links
   * are by now, and nothing is read from the environment or from files.
   *
   * @param secret the cluster's; null if there is none
   */
  static MountSettings resume(
      Map<MountOption, Setting> settings,
      @Nullable Path mountpoint,
      @Nullable ClusterSecret secret,
      Surroundings surroundings)
      throws MountFailure {
    if (mountpoint == null) {
      throw MountFailure.usage("the session's settings name no mount point");
    }
    return new SettingsParser(settings, surroundings, true, secret).parse(mountpoint);
  }

  /** Parses all values, whether or not a source and a mount point are known. */
  public static void validate(Configuration configuration, Surroundings surroundings)
      throws MountFailure {
    Map<MountOption, Setting> settings = new EnumMap<>(MountOption.class);
    settings.putAll(configuration.settings());
    settings.putIfAbsent(MountOption.SOURCE, Setting.of("/", Configuration.DEFAULT));
    new SettingsParser(settings, surroundings).parse(Path.of("/"));
  }

  static List<TierSpec> tiers(Map<MountOption, Setting> settings, Surroundings surroundings)
      throws MountFailure {
    return new SettingsParser(settings, surroundings).tiers();
  }

  private MountSettings parse(Path mountpoint) throws MountFailure {
    if (!settings.containsKey(MountOption.SOURCE)) {
      throw MountFailure.usage(
          "%s: no source: neither given before it nor in a section [mount.\"%s\"] of the configuration"
              .formatted(mountpoint, mountpoint));
    }
    return new MountSettings(
        place(surroundings.resolve(text(MountOption.SOURCE))),
        oneOf(MountOption.SOURCE_FORM, FORMS),
        value(MountOption.NESTED, SettingsParser::flag),
        mountpoint,
        tiers(),
        value(MountOption.KEEP_FREE, Capacity::parse),
        value(MountOption.REQUIRE_DAX, SettingsParser::flag),
        value(MountOption.COMPRESSION, Compression::parse),
        path(MountOption.STATE_DIR),
        oneOf(MountOption.BRIDGE, BRIDGES),
        oneOf(MountOption.READ_MODE, READ_MODES),
        oneOf(MountOption.EVICTION, POLICIES),
        threads(MountOption.FETCH_THREADS),
        threads(MountOption.METADATA_THREADS),
        memory(MountOption.BUFFER_MEMORY, 8 * MIB),
        memory(MountOption.METADATA_MEMORY, 16 * MIB),
        cluster(),
        value(MountOption.ALLOW_OTHER, SettingsParser::flag),
        settings.containsKey(MountOption.USER) ? text(MountOption.USER) : null,
        value(MountOption.PASSTHROUGH_CAPABILITY, SettingsParser::flag),
        settings.containsKey(MountOption.METRICS)
            ? value(MountOption.METRICS, MetricsAddress::parse)
            : null,
        value(MountOption.READY_TIMEOUT, SettingsParser::positive),
        path(MountOption.LOG_FILE),
        oneOf(MountOption.LOG_LEVEL, LEVELS),
        path(MountOption.ACCESS_LOG),
        value(MountOption.SLOW_REQUESTS, SettingsParser::timeOrOff));
  }

  private List<TierSpec> tiers() throws MountFailure {
    List<TierSpec> tiers = new ArrayList<>();
    Setting setting = settings.get(MountOption.TIER);
    if (setting == null) {
      return tiers;
    }
    for (String text : setting.values()) {
      TierSpec tier =
          convert(MountOption.TIER, setting, text, t -> TierSpec.parse(t, surroundings));
      Path path = place(tier.path());
      if (tiers.stream().anyMatch(other -> other.path().equals(path))) {
        throw MountFailure.usage("--tier " + text + ": this directory is a tier already");
      }
      tiers.add(tier.at(path));
    }
    return tiers;
  }

  private @Nullable ClusterOptions cluster() throws MountFailure {
    if (!settings.containsKey(MountOption.CLUSTER)) {
      for (MountOption option : MountOption.options()) {
        Setting setting = settings.get(option);
        if (option.isOfCluster()
            && setting != null
            && setting.origin().equals(Configuration.COMMAND_LINE)) {
          throw MountFailure.usage(option.commandLineName() + ": needs --cluster NAME");
        }
      }
      return null;
    }
    String name = value(MountOption.CLUSTER, ClusterParser::name);
    refuseBoth(MountOption.CLUSTER_DIR, MountOption.NODES);
    refuseBoth(MountOption.CLUSTER_DIR, MountOption.NODES_FILE);
    refuseBoth(MountOption.NODES_FILE, MountOption.NODES);
    Path directory = path(MountOption.CLUSTER_DIR);
    return new ClusterOptions(
        name,
        directory == null ? nodes() : List.of(),
        directory,
        settings.containsKey(MountOption.CLUSTER_ADDRESS)
            ? text(MountOption.CLUSTER_ADDRESS)
            : null,
        secret(directory),
        value(MountOption.REPLICAS, ClusterParser::replicas),
        value(MountOption.REMOTE_COPIES, ClusterParser::remoteCopies),
        value(MountOption.PEER_TIMEOUTS, ClusterParser::timeouts),
        settings.containsKey(MountOption.CLUSTER_TLS)
            ? value(MountOption.CLUSTER_TLS, text -> ClusterParser.tls(text, surroundings))
            : List.of());
  }

  /** Two of the command line that say the same in two ways. */
  private void refuseBoth(MountOption one, MountOption other) throws MountFailure {
    Setting first = settings.get(one);
    Setting second = settings.get(other);
    if (first != null
        && second != null
        && first.origin().equals(Configuration.COMMAND_LINE)
        && second.origin().equals(Configuration.COMMAND_LINE)) {
      throw MountFailure.usage(
          one.commandLineName() + ": not together with " + other.commandLineName());
    }
  }

  private List<String> nodes() throws MountFailure {
    if (settings.containsKey(MountOption.NODES)) {
      return value(MountOption.NODES, ClusterParser::nodes);
    }
    if (settings.containsKey(MountOption.NODES_FILE)) {
      return value(MountOption.NODES_FILE, text -> NodeList.ofFile(surroundings.resolve(text)));
    }
    String job = surroundings.variable(ClusterParser.SLURM_NODES);
    if (job == null) {
      throw MountFailure.usage(
          "--cluster: which nodes? give --nodes a,b,c, --nodes-file FILE or --cluster-dir DIR");
    }
    try {
      return NodeList.ofSlurm(job);
    } catch (IllegalArgumentException e) {
      throw new MountFailure(
          ExitStatus.USAGE, ClusterParser.SLURM_NODES + ": " + e.getMessage(), e);
    }
  }

  /** Null where a mount is to make it in the nodes' directory. */
  private @Nullable ClusterSecret secret(@Nullable Path directory) throws MountFailure {
    if (isResumed) {
      return kept;
    }
    if (settings.containsKey(MountOption.CLUSTER_SECRET_FILE)) {
      return value(
          MountOption.CLUSTER_SECRET_FILE,
          text -> ClusterSecret.ofFile(surroundings.resolve(text)));
    }
    ClusterSecret secret;
    try {
      secret = ClusterParser.secret(surroundings);
    } catch (IllegalArgumentException e) {
      throw new MountFailure(ExitStatus.USAGE, String.valueOf(e.getMessage()), e);
    }
    if (secret != null) {
      return secret;
    }
    if (directory == null) {
      throw MountFailure.usage(ClusterOptions.NO_SECRET);
    }
    return value(MountOption.CLUSTER_DIR, text -> ClusterSecret.ofDirectoryIfThere(directory));
  }

  private int threads(MountOption option) throws MountFailure {
    return value(
        option,
        text -> {
          int count = text.matches("\\d{1,6}") ? Integer.parseInt(text) : 0;
          if (count < 1 || count > 256) {
            throw new IllegalArgumentException("'" + text + "' is not a number from 1 to 256");
          }
          return count;
        });
  }

  private long memory(MountOption option, long least) throws MountFailure {
    return value(
        option,
        text -> {
          long bytes = ByteSize.parse(text);
          if (bytes < least) {
            throw new IllegalArgumentException(
                "'" + text + "' is too little; give at least " + least / MIB + "MiB");
          }
          return bytes;
        });
  }

  private String oneOf(MountOption option, List<String> known) throws MountFailure {
    return value(
        option,
        text -> {
          if (!known.contains(text)) {
            throw new IllegalArgumentException(
                "'" + text + "' is not known; choose one of " + String.join(", ", known));
          }
          return text;
        });
  }

  private static boolean flag(String text) {
    return switch (text) {
      case "true", "yes", "on", "1" -> true;
      case "false", "no", "off", "0" -> false;
      default -> throw new IllegalArgumentException("'" + text + "' is neither true nor false");
    };
  }

  private static Duration positive(String text) {
    Duration span = TimeSpan.parse(text);
    if (span.isZero()) {
      throw new IllegalArgumentException("'" + text + "' is no time at all");
    }
    return span;
  }

  private static Duration timeOrOff(String text) {
    return text.equals("off") || text.equals("0") ? Duration.ZERO : TimeSpan.parse(text);
  }

  private @Nullable Path path(MountOption option) throws MountFailure {
    return settings.containsKey(option) ? place(value(option, surroundings::resolve)) : null;
  }

  private Path place(Path path) {
    return isResumed ? path : surroundings.resolveLinks(path);
  }

  private String text(MountOption option) throws MountFailure {
    return value(option, text -> text);
  }

  private <T> T value(MountOption option, Function<String, T> parser) throws MountFailure {
    Setting setting = settings.get(option);
    if (setting == null || setting.values().isEmpty() || setting.values().get(0).isEmpty()) {
      throw MountFailure.usage(option.commandLineName() + ": no value given");
    }
    return convert(option, setting, setting.values().get(0), parser);
  }

  private static <T> T convert(
      MountOption option, Setting setting, String text, Function<String, T> parser)
      throws MountFailure {
    try {
      return parser.apply(text);
    } catch (IllegalArgumentException e) {
      String origin =
          setting.origin().equals(Configuration.COMMAND_LINE)
              ? ""
              : " (from " + setting.origin() + ")";
      throw new MountFailure(
          ExitStatus.USAGE, option.commandLineName() + origin + ": " + e.getMessage(), e);
    }
  }
}
