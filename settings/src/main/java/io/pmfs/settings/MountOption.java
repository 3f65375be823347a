package io.pmfs.settings;

import static io.pmfs.settings.Declaration.argument;
import static io.pmfs.settings.Declaration.choice;
import static io.pmfs.settings.Declaration.flag;
import static io.pmfs.settings.Declaration.list;
import static io.pmfs.settings.Declaration.ofFiles;
import static io.pmfs.settings.Declaration.path;
import static io.pmfs.settings.Declaration.value;

import io.pmfs.cluster.client.PeerTimeouts;
import io.pmfs.cluster.members.ClusterSecret;
import io.pmfs.cluster.members.NodeList;
import io.pmfs.machine.TimeSpan;
import io.pmfs.machine.ValueParser;
import io.pmfs.places.Capacity;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierSpec;
import io.pmfs.stage.copies.RemoteCopies;
import io.pmfs.stage.formats.Compression;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * An option of a mount. The command line with its help and completion, the environment, the
 * configuration file and its example, and the manual all derive from its declaration here.
 * Immutable; ordered as declared, which is also the order of the help.
 *
 * @param <T> the type of the parsed value
 */
public final class MountOption<T> implements Comparable<MountOption<?>> {
  // Declared before the options, because each option registers itself.
  private static final List<MountOption<?>> ALL = new ArrayList<>();

  public static final MountOption<Path> SOURCE =
      argument("source", "SOURCE")
          .suchAs("/lustre/imagenet")
          .means("the dataset; in a configuration file only in a mount's section");

  public static final MountOption<String> SOURCE_FORM =
      choice("source-form", "FORM", "auto", "directory", "tar")
          .in(Group.SOURCE)
          .byDefault("auto")
          .means(
              "what to show of the source: directory shows its files, tar shows the files inside"
                  + " its tar files; auto chooses tar for a single file, for the output of pmfs"
                  + " pack and, with --nested, for a directory that holds only tar files");
  public static final MountOption<Boolean> NESTED =
      flag("nested")
          .in(Group.SOURCE)
          .means("show tar files inside tar files as directories, one level deep");
  public static final MountOption<Integer> METADATA_THREADS =
      value("metadata-threads", "N", ValueParser.countTo(256))
          .in(Group.SOURCE)
          .byDefault("8")
          .means("threads that look up names in the source, 1 to 256");
  public static final MountOption<Long> METADATA_MEMORY =
      value("metadata-memory", "SIZE", ValueParser.memory(16))
          .in(Group.SOURCE)
          .byDefault("64MiB")
          .means("limit for cached names, at least 16MiB");

  public static final MountOption<List<TierSpec>> TIER =
      list("tier", TierSpec.FORM, TierSpec::parse)
          .in(Group.TIERS)
          .naming(text -> List.of(text.substring(text.indexOf(':') + 1)))
          .suchAs("ssd:/local/pmfs:80%")
          .means(
              "where to keep copies, fastest first; repeat for more tiers. KIND is pm or ssd,"
                  + " CAPACITY a size or a share of the disk, COMPRESSION a value of"
                  + " --compression");
  public static final MountOption<Path> NODE_CACHE =
      path("node-cache", "SOCKET")
          .formerly("cache")
          .in(Group.TIERS)
          .suchAs("/run/pmfs-cache/socket")
          .means(
              "read content through the cache of this node, pmfs node-cache, which all users share;"
                  + " without it from the source. Then the mount has no copies of its own unless"
                  + " --tier is given");
  public static final MountOption<Capacity> KEEP_FREE =
      value("keep-free", "SIZE", Capacity::parse)
          .in(Group.TIERS)
          .byDefault("10%")
          .means("space to leave free on each tier's disk");
  public static final MountOption<Boolean> REQUIRE_DAX =
      flag("require-dax")
          .in(Group.TIERS)
          .means(
              "refuse to mount if a tier of kind pm is not on persistent memory that can be mapped"
                  + " directly");
  public static final MountOption<Path> STATE_DIR =
      path("state-dir", "DIR")
          .in(Group.TIERS)
          .suchAs("/local/pmfs/state")
          .means("where to keep cached names and the list of copies");

  public static final MountOption<Compression> COMPRESSION =
      value("compression", "HOW", Compression::parse)
          .in(Group.STAGING)
          .offering("none", "zstd", "auto")
          .byDefault("none")
          .means(
              "how to store copies: none; zstd[:LEVEL] compresses all files, at level 1 to 19, 3"
                  + " unless given; auto[:LEVEL] compresses only files that shrink by a tenth."
                  + " Passthrough needs uncompressed copies");
  public static final MountOption<String> EVICTION =
      choice("eviction", "POLICY", "none", "lru")
          .in(Group.STAGING)
          .byDefault("none")
          .means(
              "what to evict when a tier is full: none for nothing, lru for the least recently used"
                  + " copies");
  public static final MountOption<Integer> FETCH_THREADS =
      value("fetch-threads", "N", ValueParser.countTo(256))
          .in(Group.STAGING)
          .byDefault("4")
          .means("threads that copy files to the tiers, 1 to 256");
  public static final MountOption<Long> BUFFER_MEMORY =
      value("buffer-memory", "SIZE", ValueParser.memory(8))
          .in(Group.STAGING)
          .byDefault("64MiB")
          .means("limit for buffers, at least 8MiB");

  public static final MountOption<Boolean> ALLOW_OTHER =
      flag("allow-other")
          .in(Group.JOBS)
          .means("let other users access the mount, as far as file modes permit");
  public static final MountOption<String> USER =
      value("user", "NAME", text -> text)
          .in(Group.JOBS)
          .notInFiles()
          .means(
              "for root: mount for this user, who can then access the mount while root cannot. The"
                  + " daemon runs as the user, with the user's groups; not in a configuration"
                  + " file");
  public static final MountOption<Boolean> PASSTHROUGH_CAPABILITY =
      flag("passthrough-capability")
          .in(Group.JOBS)
          .notInFiles()
          .means(
              "let the daemon of --user keep CAP_SYS_ADMIN, which passthrough needs; it gives the"
                  + " daemon nearly root's power. Not in a configuration file");
  public static final MountOption<Duration> LINGER =
      value("linger", "TIME", ValueParser::timeOrOff)
          .in(Group.JOBS)
          .byDefault("off")
          .means(
              "for root: how long the daemon stays after the last mount point was unmounted, so"
                  + " that the next mount of the dataset finds it warm; off to end at once. pmfs"
                  + " status shows such a daemon, and where pmfs umount ends it");

  public static final MountOption<String> CLUSTER =
      value("cluster", "NAME", ClusterParser::name)
          .in(Group.CLUSTER)
          .suchAs("training")
          .means(
              "share the dataset with the other nodes that mount it under this cluster name: each"
                  + " file is read from the source once for all of them");
  public static final MountOption<List<String>> NODES =
      value("nodes", "HOSTS", ClusterParser::nodes)
          .in(Group.CLUSTER)
          .suchAs("node[01-16]")
          .means(
              "the nodes of the cluster: a,b,c or node[01-16]; some may be absent. Default: the"
                  + " nodes of the Slurm job");
  public static final MountOption<List<String>> NODES_FILE =
      ofFiles("nodes-file", "FILE", (text, world) -> NodeList.ofFile(world.resolve(text)))
          .in(Group.CLUSTER)
          .suchAs("/home/ada/nodes")
          .means("the same, from a file with one host per line");
  public static final MountOption<Path> CLUSTER_DIR =
      path("cluster-dir", "DIR")
          .in(Group.CLUSTER)
          .suchAs("/home/ada/cluster")
          .means("a directory shared by all nodes, in which they find each other without a list");
  public static final MountOption<String> CLUSTER_ADDRESS =
      value("cluster-address", "ADDRESS", text -> text)
          .in(Group.CLUSTER)
          .suchAs("10.0.0.1")
          .means(
              "the address of this machine that the other nodes use; default: its address in the"
                  + " list of nodes");
  public static final MountOption<ClusterSecret> CLUSTER_SECRET_FILE =
      ofFiles(
              "cluster-secret-file",
              "FILE",
              (text, world) -> ClusterParser.secretOfFile(world.resolve(text)))
          .in(Group.CLUSTER)
          .suchAs("~/.config/pmfs/secret")
          .means(
              "a file of mode 0600 with the secret of the cluster; PMFS_CLUSTER_SECRET can hold the"
                  + " secret instead. Default: the secret in the shared directory, which the first"
                  + " node creates");
  public static final MountOption<List<Path>> CLUSTER_TLS =
      ofFiles("cluster-tls", "CERTIFICATES,KEY,AUTHORITIES", ClusterParser::tls)
          .naming(ClusterParser::files)
          .in(Group.CLUSTER)
          .suchAs("/etc/pmfs/node.pem,/etc/pmfs/node.key,/etc/pmfs/ca.pem")
          .means(
              "PEM files for encrypted connections between nodes; default: messages are signed, not"
                  + " encrypted");
  public static final MountOption<Integer> REPLICAS =
      value("replicas", "N", ValueParser.countTo(16))
          .in(Group.CLUSTER)
          .byDefault("1")
          .means("how many nodes of the cluster hold each file, 1 to 16");
  public static final MountOption<RemoteCopies> REMOTE_COPIES =
      value("remote-copies", "WHEN", ClusterParser::remoteCopies)
          .offering(ClusterParser.remoteCopyWords())
          .in(Group.CLUSTER)
          .byDefault("auto")
          .means(
              "whether this node copies files that it reads from other nodes: auto, while there is"
                  + " room to spare; keep, always; or never");
  public static final MountOption<PeerTimeouts> PEER_TIMEOUTS =
      value("peer-timeouts", "LIMITS", ClusterParser::timeouts)
          .in(Group.CLUSTER)
          .byDefault("connect=1s,first-byte=3s,stall=3s,total=60s")
          .means("how long to wait for another node before reading from the source instead");

  public static final MountOption<Boolean> WRITABLE =
      flag("writable")
          .in(Group.WRITING)
          .means(
              "experimental until sites have used it: let programs change files and create new"
                  + " ones. Changes are kept in the tiers and copied to the source in order; pmfs"
                  + " drain waits until all are copied");
  public static final MountOption<Long> DRAIN_RATE =
      value("drain-rate", "SIZE", ValueParser::rate)
          .in(Group.WRITING)
          .byDefault("unlimited")
          .means("how many bytes a second --writable copies to the source at most, such as 500M");
  public static final MountOption<String> FSYNC =
      choice("fsync", "WHERE", "node", "source")
          .in(Group.WRITING)
          .byDefault("node")
          .means(
              "where files of a --writable mount are safe when fsync(2) returns: on a disk of"
                  + " this node, or at the source, which takes as long as copying all earlier"
                  + " changes");
  public static final MountOption<Duration> SOURCE_PATIENCE =
      value("source-patience", "TIME", TimeSpan::parsePositive)
          .in(Group.WRITING)
          .byDefault("5m")
          .means(
              "how long a --writable mount uses the names, attributes and content that this node"
                  + " has while the source does not answer; then programs wait for the source");

  public static final MountOption<String> BRIDGE =
      choice("bridge", "BRIDGE", "auto", "kernel", "jnr")
          .byDefault("auto")
          .means(
              "how pmfs receives requests from the kernel: kernel speaks the FUSE protocol itself,"
                  + " jnr uses libfuse 2, auto uses kernel where possible");
  public static final MountOption<String> READ_MODE =
      choice("read-mode", "MODE", "auto", "page-cache", "passthrough")
          .byDefault("auto")
          .means(
              "how the kernel can answer reads without pmfs: page-cache keeps data in memory after"
                  + " the first read; passthrough, for root, reads the files of copies, which suits"
                  + " large files; auto uses passthrough if the first tier is persistent memory,"
                  + " else for large files, and chooses for all others when copies are read again");
  public static final MountOption<MetricsAddress> METRICS =
      value("metrics", MetricsAddress.FORM, MetricsAddress::parse)
          .suchAs("9464")
          .means(
              "serve metrics for Prometheus and a web page, to anyone who can connect: on this"
                  + " machine only unless ADDRESS is given, on any free port if PORT is 0");
  public static final MountOption<Duration> READY_TIMEOUT =
      value("ready-timeout", "TIME", TimeSpan::parsePositive)
          .byDefault("30s")
          .means("how long a new mount may take to join its cluster and to answer");
  public static final MountOption<Path> LOG_FILE =
      path("log-file", "FILE")
          .suchAs("/var/log/pmfs/dataset.log")
          .means("the daemon's log file; rotated at 10 MiB, 5 kept");
  public static final MountOption<String> LOG_LEVEL =
      choice("log-level", "LEVEL", "error", "warn", "info", "debug", "trace")
          .byDefault("info")
          .means("error, warn, info, debug or trace");
  public static final MountOption<Path> ACCESS_LOG =
      path("access-log", "FILE")
          .suchAs("/var/log/pmfs/dataset.access")
          .means(
              "log each request from the kernel: which process asked for what, and how long it"
                  + " took; rotated at 100 MiB, 7 kept. Requests that the kernel answers without"
                  + " pmfs are not logged. Each mount needs its own file");
  public static final MountOption<Duration> SLOW_REQUESTS =
      value("slow-requests", "TIME", ValueParser::timeOrOff)
          .byDefault("10s")
          .means(
              "log a warning for requests that take at least this long, answered or not, at most"
                  + " ten times a minute; off to disable");

  /** The syntax of an option. */
  public enum Kind {
    /** Given by position on the command line; in a file only in the section of a mount. */
    ARGUMENT,
    VALUE,
    LIST,
    FLAG
  }

  /** A group of options in the help, in this order. */
  public enum Group {
    SOURCE("Source:"),
    TIERS("Tiers:"),
    STAGING("Copying to the tiers:"),
    JOBS("Users and jobs:"),
    CLUSTER("In a cluster:"),
    WRITING("Writing:"),
    OPERATION("Operation:");

    private final String heading;

    Group(String heading) {
      this.heading = heading;
    }

    public String heading() {
      return heading;
    }
  }

  private final int index;
  private final Kind kind;
  private final String key;
  private final @Nullable String formerKey;
  private final String placeholder;
  private final BiFunction<List<String>, Surroundings, T> parser;
  private final Function<String, List<String>> paths;
  private final @Nullable String defaultText;
  private final String example;
  private final Group group;
  private final List<String> choices;
  private final boolean isForFiles;
  private final String description;

  MountOption(Declaration<T> declared, String description) {
    this.kind = declared.kind;
    this.key = declared.key;
    this.formerKey = declared.formerKey;
    this.placeholder = declared.placeholder;
    this.parser = declared.parser;
    this.paths = declared.paths;
    this.defaultText = declared.defaultText;
    this.example = declared.example;
    this.group = declared.group;
    this.choices = declared.choices;
    this.isForFiles = declared.isForFiles;
    this.description = description;
    this.index = ALL.size();
    ALL.add(this);
  }

  public Kind kind() {
    return kind;
  }

  /** The placeholder for the value in the help; empty for a flag. */
  public String placeholder() {
    return placeholder;
  }

  /** The default, or null when it depends on the machine or is absent. */
  public @Nullable String defaultText() {
    return defaultText;
  }

  /**
   * The value in the example file: the default, or an example; empty for an option that files may
   * not set.
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

  /** Words for completion; empty if any text is valid. */
  public List<String> choices() {
    return choices;
  }

  /** The key in a configuration file. */
  public String key() {
    return key;
  }

  public String commandLineName() {
    return "--" + key;
  }

  /** All names on the command line, the present one first. */
  public String[] commandLineNames() {
    return keysAndFormer().map(each -> "--" + each).toArray(String[]::new);
  }

  private Stream<String> keysAndFormer() {
    return Stream.concat(Stream.of(key), Stream.ofNullable(formerKey));
  }

  public String variable() {
    return variableOf(key);
  }

  /** All names in the environment, the present one first. */
  public List<String> variables() {
    return keysAndFormer().map(MountOption::variableOf).toList();
  }

  static String variableOf(String key) {
    return "PMFS_" + key.toUpperCase(Locale.ROOT).replace('-', '_');
  }

  /** Whether a configuration file may set it. */
  public boolean isForFiles() {
    return isForFiles;
  }

  /** The paths in an option's text, as written. */
  List<String> pathsIn(String text) {
    return paths.apply(text);
  }

  /**
   * Parses the option's text, or the texts of a list.
   *
   * @throws IllegalArgumentException with a message for the user
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
    return ALL.stream()
        .filter(option -> option.keysAndFormer().anyMatch(key::equals))
        .findFirst()
        .orElse(null);
  }

  static List<String> keys() {
    return ALL.stream().filter(MountOption::isForFiles).map(MountOption::key).toList();
  }

  /** All options and the argument. */
  public static List<MountOption<?>> values() {
    return Collections.unmodifiableList(ALL);
  }

  /** The options of the command line and the environment. */
  public static List<MountOption<?>> options() {
    return ALL.stream().filter(o -> o.kind != Kind.ARGUMENT).toList();
  }
}
