package io.pmfs.settings;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * What a mount can be told: the one list behind the command line, the environment and the
 * configuration file.
 */
public enum MountOption {
  SOURCE(Kind.ARGUMENT, "SOURCE", null, "the dataset; in a file's section only"),
  SOURCE_FORM(
      Kind.VALUE,
      "FORM",
      "auto",
      "what is shown of the source: directory shows its files, tar what is in them; auto takes tar"
          + " for a single file, for what pmfs pack wrote, and for a directory of nothing but tar"
          + " files"),
  NESTED(Kind.FLAG, "", "false", "show tar files in tar files as directories, one level"),
  TIER(
      Kind.LIST,
      TierSpec.FORM,
      null,
      "where copies are kept, fastest first; repeat for more. KIND is pm or ssd, CAPACITY a size or"
          + " a share of the disk, COMPRESSION as of --compression"),
  KEEP_FREE(Kind.VALUE, "SIZE", "10%", "always left free on each tier's disk"),
  REQUIRE_DAX(
      Kind.FLAG,
      "",
      "false",
      "refuse to mount if a tier of kind pm is not on persistent memory that can be mapped itself"),
  COMPRESSION(
      Kind.VALUE,
      "HOW",
      "none",
      "how copies are stored: none; zstd[:LEVEL] compresses all, at level 1 to 19, 3 unless given;"
          + " auto[:LEVEL] compresses files that shrink by a tenth. The kernel reads only raw copies by"
          + " itself"),
  STATE_DIR(Kind.VALUE, "DIR", null, "where names and the list of copies are kept"),
  BRIDGE(
      Kind.VALUE,
      "BRIDGE",
      "auto",
      "how requests come from the kernel: kernel speaks its protocol, jnr goes through libfuse 2, auto"
          + " takes kernel where it can"),
  READ_MODE(
      Kind.VALUE,
      "MODE",
      "auto",
      "what the kernel may answer alone: page-cache keeps what was read in memory; passthrough, for"
          + " root, reads the copies' files, which suits large ones; auto takes passthrough if the first"
          + " tier is persistent memory, else it chooses when copies are read again"),
  EVICTION(Kind.VALUE, "POLICY", "none", "who goes when a tier is full: none or lru"),
  FETCH_THREADS(Kind.VALUE, "N", "4", "threads that copy files to the tiers, 1 to 256"),
  METADATA_THREADS(Kind.VALUE, "N", "8", "threads that ask the source for names, 1 to 256"),
  BUFFER_MEMORY(Kind.VALUE, "SIZE", "64MiB", "limit for buffers, at least 8MiB"),
  METADATA_MEMORY(Kind.VALUE, "SIZE", "64MiB", "limit for cached names, at least 16MiB"),
  CLUSTER(
      Kind.VALUE,
      "NAME",
      null,
      "hold the dataset together with the other nodes that mount it under this name: each file"
          + " leaves the source once for all of them"),
  NODES(
      Kind.VALUE,
      "HOSTS",
      null,
      "the nodes of the cluster: a,b,c or node[01-16]; not all need be there. Default: those of the"
          + " Slurm job"),
  NODES_FILE(Kind.VALUE, "FILE", null, "the same, one host in a line"),
  CLUSTER_DIR(
      Kind.VALUE,
      "DIR",
      null,
      "a directory that all nodes share, where they find each other without a list"),
  CLUSTER_ADDRESS(
      Kind.VALUE,
      "ADDRESS",
      null,
      "which of this machine's addresses the others are to use; default: the one in the list of nodes"),
  CLUSTER_SECRET_FILE(
      Kind.VALUE,
      "FILE",
      null,
      "what only the nodes of the cluster know, of mode 0600; or in PMFS_CLUSTER_SECRET. Default: the"
          + " one in the directory that they share, made by the first of them"),
  CLUSTER_TLS(
      Kind.VALUE,
      MountOption.PEM_FILES,
      null,
      "PEM files with which nodes encrypt what they send each other; default: only signed"),
  REPLICAS(Kind.VALUE, "N", "1", "how many nodes of the cluster hold each file, 1 to 16"),
  REMOTE_COPIES(
      Kind.VALUE,
      "WHEN",
      "auto",
      "whether files that other nodes hold are copied here, too, when they are read: auto, while there"
          + " is room to spare; keep; or never"),
  PEER_TIMEOUTS(
      Kind.VALUE,
      "LIMITS",
      "connect=1s,first-byte=3s,stall=3s,total=60s",
      "how long another node is waited for before the source is asked instead"),
  ALLOW_OTHER(Kind.FLAG, "", "false", "let other users in, as far as modes permit"),
  USER(
      Kind.VALUE,
      "NAME",
      null,
      "for root: mount for this user, who then gets in while root does not. The daemon runs as the"
          + " user, with the user's groups; not in a configuration file"),
  PASSTHROUGH_CAPABILITY(
      Kind.FLAG,
      "",
      "false",
      "let the daemon of --user keep CAP_SYS_ADMIN, without which it has no passthrough; that is"
          + " nearly root's power. Not in a configuration file"),
  METRICS(
      Kind.VALUE,
      MetricsAddress.FORM,
      null,
      "answer metrics for Prometheus and a page for people there, to everybody who reaches it: on"
          + " this machine alone unless an ADDRESS is given, on any free port if PORT is 0"),
  READY_TIMEOUT(Kind.VALUE, "TIME", "30s", "how long the mount may take to answer"),
  LOG_FILE(Kind.VALUE, "FILE", null, "where the daemon logs; rotated at 10 MiB, 5 kept"),
  LOG_LEVEL(Kind.VALUE, "LEVEL", "info", "error, warn, info, debug or trace"),
  ACCESS_LOG(
      Kind.VALUE,
      "FILE",
      null,
      "a line for each request of the kernel: who asked what, and how long that took; rotated at"
          + " 100 MiB, 7 kept. What the kernel answers by itself is not in it. Each mount needs a"
          + " file of its own"),
  SLOW_REQUESTS(
      Kind.VALUE,
      "TIME",
      "10s",
      "warn in the log of requests that take at least so long, answered or not, ten times a minute"
          + " at most; off for never");

  /** How an option is written. */
  public enum Kind {
    ARGUMENT,
    VALUE,
    LIST,
    FLAG
  }

  private static final String PEM_FILES = "CERTIFICATES,KEY,AUTHORITIES";

  private final Kind kind;
  private final String placeholder;
  private final @Nullable String defaultText;
  private final String description;

  MountOption(Kind kind, String placeholder, @Nullable String defaultText, String description) {
    this.kind = kind;
    this.placeholder = placeholder;
    this.defaultText = defaultText;
    this.description = description;
  }

  public Kind kind() {
    return kind;
  }

  public String placeholder() {
    return placeholder;
  }

  /** The default, or null when it depends on the machine or is absent. */
  public @Nullable String defaultText() {
    return defaultText;
  }

  public String description() {
    return description;
  }

  /** The key in a configuration file. */
  public String key() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  public String commandLineName() {
    return "--" + key();
  }

  public String variable() {
    return "PMFS_" + name();
  }

  /** Whether a file may have it: the launcher, which knows no files, needs some before the JVM. */
  public boolean isForFiles() {
    return this != USER && this != PASSTHROUGH_CAPABILITY;
  }

  /** Whether it is for mounts that share their dataset with other nodes. */
  public boolean isOfCluster() {
    return compareTo(CLUSTER) >= 0 && compareTo(PEER_TIMEOUTS) <= 0;
  }

  /** The paths that a value names: what its placeholder calls so. */
  List<String> pathsIn(String value) {
    return switch (placeholder) {
      case "SOURCE", "FILE", "DIR" -> List.of(value);
      case TierSpec.FORM -> List.of(value.substring(value.indexOf(':') + 1));
      case PEM_FILES -> Arrays.stream(value.split(",", -1)).map(String::strip).toList();
      default -> List.of();
    };
  }

  static @Nullable MountOption ofKey(String key) {
    return Arrays.stream(values()).filter(o -> o.key().equals(key)).findFirst().orElse(null);
  }

  static List<String> keys() {
    return Arrays.stream(values()).filter(MountOption::isForFiles).map(MountOption::key).toList();
  }

  /** Those that command line and environment know. */
  public static List<MountOption> options() {
    return Arrays.stream(values()).filter(o -> o.kind != Kind.ARGUMENT).toList();
  }
}
