package io.pmfs.settings;

import static io.pmfs.settings.Declaration.argument;
import static io.pmfs.settings.Declaration.choice;
import static io.pmfs.settings.Declaration.flag;
import static io.pmfs.settings.Declaration.list;
import static io.pmfs.settings.Declaration.path;
import static io.pmfs.settings.Declaration.read;
import static io.pmfs.settings.Declaration.value;

import io.pmfs.cluster.ClusterSecret;
import io.pmfs.cluster.NodeList;
import io.pmfs.cluster.PeerTimeouts;
import io.pmfs.stage.Compression;
import io.pmfs.stage.RemoteCopies;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Something a mount can be told, declared here once. The command line with its help and completion,
 * the environment, the configuration file and its example, and the manual all derive from the
 * declaration. Immutable; ordered as declared, which is also the order of the help.
 *
 * @param <T> what its text is parsed to
 */
public final class MountOption<T> implements Comparable<MountOption<?>> {
  // Before the options, which add themselves.
  private static final List<MountOption<?>> ALL = new ArrayList<>();

  public static final MountOption<Path> SOURCE =
      argument("source", "SOURCE")
          .suchAs("/lustre/imagenet")
          .means("the dataset; in a file's section only");
  public static final MountOption<String> SOURCE_FORM =
      choice("source-form", "FORM", "auto", "directory", "tar")
          .byDefault("auto")
          .means(
              "what is shown of the source: directory shows its files, tar what is in them; auto"
                  + " takes tar for a single file, for what pmfs pack wrote, and for a directory of"
                  + " nothing but tar files");
  public static final MountOption<Boolean> NESTED =
      flag("nested").means("show tar files in tar files as directories, one level");
  public static final MountOption<List<TierSpec>> TIER =
      list("tier", TierSpec.FORM, TierSpec::parse)
          .naming(text -> List.of(text.substring(text.indexOf(':') + 1)))
          .suchAs("ssd:/local/pmfs:80%")
          .means(
              "where copies are kept, fastest first; repeat for more. KIND is pm or ssd, CAPACITY a"
                  + " size or a share of the disk, COMPRESSION as of --compression");
  public static final MountOption<Capacity> KEEP_FREE =
      value("keep-free", "SIZE", Capacity::parse)
          .byDefault("10%")
          .means("always left free on each tier's disk");
  public static final MountOption<Boolean> REQUIRE_DAX =
      flag("require-dax")
          .means(
              "refuse to mount if a tier of kind pm is not on persistent memory that can be mapped"
                  + " itself");
  public static final MountOption<Compression> COMPRESSION =
      value("compression", "HOW", Compression::parse)
          .byDefault("none")
          .means(
              "how copies are stored: none; zstd[:LEVEL] compresses all, at level 1 to 19, 3 unless"
                  + " given; auto[:LEVEL] compresses files that shrink by a tenth. The kernel reads"
                  + " only raw copies by itself");
  public static final MountOption<Path> STATE_DIR =
      path("state-dir", "DIR")
          .suchAs("/local/pmfs/state")
          .means("where names and the list of copies are kept");
  public static final MountOption<String> BRIDGE =
      choice("bridge", "BRIDGE", "auto", "kernel", "jnr")
          .byDefault("auto")
          .means(
              "how requests come from the kernel: kernel speaks its protocol, jnr goes through"
                  + " libfuse 2, auto takes kernel where it can");
  public static final MountOption<String> READ_MODE =
      choice("read-mode", "MODE", "auto", "page-cache", "passthrough")
          .byDefault("auto")
          .means(
              "what the kernel may answer alone: page-cache keeps what was read in memory;"
                  + " passthrough, for root, reads the copies' files, which suits large ones; auto"
                  + " takes passthrough if the first tier is persistent memory, else for large files,"
                  + " and chooses for the others when copies are read again");
  public static final MountOption<String> EVICTION =
      choice("eviction", "POLICY", "none", "lru")
          .byDefault("none")
          .means("who goes when a tier is full: none or lru");
  public static final MountOption<Integer> FETCH_THREADS =
      value("fetch-threads", "N", ValueParser.countTo(256))
          .byDefault("4")
          .means("threads that copy files to the tiers, 1 to 256");
  public static final MountOption<Integer> METADATA_THREADS =
      value("metadata-threads", "N", ValueParser.countTo(256))
          .byDefault("8")
          .means("threads that ask the source for names, 1 to 256");
  public static final MountOption<Long> BUFFER_MEMORY =
      value("buffer-memory", "SIZE", ValueParser.memory(8))
          .byDefault("64MiB")
          .means("limit for buffers, at least 8MiB");
  public static final MountOption<Long> METADATA_MEMORY =
      value("metadata-memory", "SIZE", ValueParser.memory(16))
          .byDefault("64MiB")
          .means("limit for cached names, at least 16MiB");

  public static final MountOption<String> CLUSTER =
      value("cluster", "NAME", ClusterParser::name)
          .in(Group.CLUSTER)
          .suchAs("training")
          .means(
              "hold the dataset together with the other nodes that mount it under this name: each"
                  + " file leaves the source once for all of them");
  public static final MountOption<List<String>> NODES =
      value("nodes", "HOSTS", ClusterParser::nodes)
          .in(Group.CLUSTER)
          .suchAs("node[01-16]")
          .means(
              "the nodes of the cluster: a,b,c or node[01-16]; not all need be there. Default: those"
                  + " of the Slurm job");
  public static final MountOption<List<String>> NODES_FILE =
      read("nodes-file", "FILE", (text, world) -> NodeList.ofFile(world.resolve(text)))
          .in(Group.CLUSTER)
          .suchAs("/home/ada/nodes")
          .means("the same, one host in a line");
  public static final MountOption<Path> CLUSTER_DIR =
      path("cluster-dir", "DIR")
          .in(Group.CLUSTER)
          .suchAs("/home/ada/cluster")
          .means("a directory that all nodes share, where they find each other without a list");
  public static final MountOption<String> CLUSTER_ADDRESS =
      value("cluster-address", "ADDRESS", text -> text)
          .in(Group.CLUSTER)
          .suchAs("10.0.0.1")
          .means(
              "which of this machine's addresses the others are to use; default: the one in the list"
                  + " of nodes");
  public static final MountOption<ClusterSecret> CLUSTER_SECRET_FILE =
      read(
              "cluster-secret-file",
              "FILE",
              (text, world) -> ClusterSecret.ofFile(world.resolve(text)))
          .in(Group.CLUSTER)
          .suchAs("~/.config/pmfs/secret")
          .means(
              "what only the nodes of the cluster know, of mode 0600; or in PMFS_CLUSTER_SECRET."
                  + " Default: the one in the directory that they share, made by the first of them");
  public static final MountOption<List<Path>> CLUSTER_TLS =
      read("cluster-tls", "CERTIFICATES,KEY,AUTHORITIES", ClusterParser::tls)
          .naming(ClusterParser::files)
          .in(Group.CLUSTER)
          .suchAs("/etc/pmfs/node.pem,/etc/pmfs/node.key,/etc/pmfs/ca.pem")
          .means(
              "PEM files with which nodes encrypt what they send each other; default: only signed");
  public static final MountOption<Integer> REPLICAS =
      value("replicas", "N", ValueParser.countTo(16))
          .in(Group.CLUSTER)
          .byDefault("1")
          .means("how many nodes of the cluster hold each file, 1 to 16");
  public static final MountOption<RemoteCopies> REMOTE_COPIES =
      value("remote-copies", "WHEN", ClusterParser::remoteCopies)
          .in(Group.CLUSTER)
          .byDefault("auto")
          .means(
              "whether files that other nodes hold are copied here, too, when they are read: auto,"
                  + " while there is room to spare; keep; or never");
  public static final MountOption<PeerTimeouts> PEER_TIMEOUTS =
      value("peer-timeouts", "LIMITS", ClusterParser::timeouts)
          .in(Group.CLUSTER)
          .byDefault("connect=1s,first-byte=3s,stall=3s,total=60s")
          .means("how long another node is waited for before the source is asked instead");

  public static final MountOption<Boolean> ALLOW_OTHER =
      flag("allow-other").means("let other users in, as far as modes permit");
  public static final MountOption<String> USER =
      value("user", "NAME", text -> text)
          .notInFiles()
          .means(
              "for root: mount for this user, who then gets in while root does not. The daemon runs"
                  + " as the user, with the user's groups; not in a configuration file");
  public static final MountOption<Boolean> PASSTHROUGH_CAPABILITY =
      flag("passthrough-capability")
          .notInFiles()
          .means(
              "let the daemon of --user keep CAP_SYS_ADMIN, without which it has no passthrough;"
                  + " that is nearly root's power. Not in a configuration file");
  public static final MountOption<MetricsAddress> METRICS =
      value("metrics", MetricsAddress.FORM, MetricsAddress::parse)
          .suchAs("9464")
          .means(
              "answer metrics for Prometheus and a page for people there, to everybody who reaches"
                  + " it: on this machine alone unless an ADDRESS is given, on any free port if PORT"
                  + " is 0");
  public static final MountOption<Duration> READY_TIMEOUT =
      value("ready-timeout", "TIME", TimeSpan::parsePositive)
          .byDefault("30s")
          .means("how long the mount may take to answer");
  public static final MountOption<Path> LOG_FILE =
      path("log-file", "FILE")
          .suchAs("/var/log/pmfs/dataset.log")
          .means("where the daemon logs; rotated at 10 MiB, 5 kept");
  public static final MountOption<String> LOG_LEVEL =
      choice("log-level", "LEVEL", "error", "warn", "info", "debug", "trace")
          .byDefault("info")
          .means("error, warn, info, debug or trace");
  public static final MountOption<Path> ACCESS_LOG =
      path("access-log", "FILE")
          .suchAs("/var/log/pmfs/dataset.access")
          .means(
              "a line for each request of the kernel: who asked what, and how long that took;"
                  + " rotated at 100 MiB, 7 kept. What the kernel answers by itself is not in it."
                  + " Each mount needs a file of its own");
  public static final MountOption<Duration> SLOW_REQUESTS =
      value("slow-requests", "TIME", ValueParser::timeOrOff)
          .byDefault("10s")
          .means(
              "warn in the log of requests that take at least so long, answered or not, ten times a"
                  + " minute at most; off for never");

  /** How an option is written. */
  public enum Kind {
    /** By its place on the command line; in a file only in the section of a mount. */
    ARGUMENT,
    VALUE,
    LIST,
    FLAG
  }

  /** What the help lists together. */
  public enum Group {
    GENERAL(""),
    CLUSTER("In a cluster:");

    private final String heading;

    Group(String heading) {
      this.heading = heading;
    }

    /** Empty for the options that come first. */
    public String heading() {
      return heading;
    }
  }

  private final int index;
  private final Kind kind;
  private final String key;
  private final String placeholder;
  private final BiFunction<List<String>, Surroundings, T> parser;
  private final Function<String, List<String>> paths;
  private final @Nullable String defaultText;
  private final String example;
  private final Group group;
  private final boolean isForFiles;
  private final String description;

  MountOption(Declaration<T> declared, String description) {
    this.kind = declared.kind;
    this.key = declared.key;
    this.placeholder = declared.placeholder;
    this.parser = declared.parser;
    this.paths = declared.paths;
    this.defaultText = declared.defaultText;
    this.example = declared.example;
    this.group = declared.group;
    this.isForFiles = declared.isForFiles;
    this.description = description;
    this.index = ALL.size();
    ALL.add(this);
  }

  public Kind kind() {
    return kind;
  }

  /** What stands for the value in the help; empty for a flag. */
  public String placeholder() {
    return placeholder;
  }

  /** The default, or null when it depends on the machine or is absent. */
  public @Nullable String defaultText() {
    return defaultText;
  }

  /**
   * A value for the example of a file: the default, or one made up; empty if it is not for files.
   */
  String example() {
    return defaultText == null ? example : defaultText;
  }

  public String description() {
    return description;
  }

  public Group group() {
    return group;
  }

  /** The key in a configuration file. */
  public String key() {
    return key;
  }

  public String commandLineName() {
    return "--" + key;
  }

  public String variable() {
    return "PMFS_" + key.toUpperCase(Locale.ROOT).replace('-', '_');
  }

  /** Whether a file may have it. */
  public boolean isForFiles() {
    return isForFiles;
  }

  /** The paths that a text names, as they are written there. */
  List<String> pathsIn(String text) {
    return paths.apply(text);
  }

  /**
   * Turns the option's text, or those of a list, into its value.
   *
   * @throws IllegalArgumentException with what is wrong, for the user
   */
  T parse(List<String> texts, Surroundings surroundings) {
    return parser.apply(texts, surroundings);
  }

  @Override
  public int compareTo(MountOption<?> other) {
    return Integer.compare(index, other.index);
  }

  @Override
  public String toString() {
    return key;
  }

  static @Nullable MountOption<?> ofKey(String key) {
    return ALL.stream().filter(o -> o.key.equals(key)).findFirst().orElse(null);
  }

  static List<String> keys() {
    return ALL.stream().filter(MountOption::isForFiles).map(MountOption::key).toList();
  }

  /** All, with the argument. */
  public static List<MountOption<?>> values() {
    return Collections.unmodifiableList(ALL);
  }

  /** Those that command line and environment know. */
  public static List<MountOption<?>> options() {
    return ALL.stream().filter(o -> o.kind != Kind.ARGUMENT).toList();
  }
}
