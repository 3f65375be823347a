package io.pmfs.cli.copies;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import io.pmfs.contents.CacheContents;
import io.pmfs.contents.CacheContents.Dataset;
import io.pmfs.contents.KnownPlaces;
import io.pmfs.daemon.Invocation;
import io.pmfs.machine.ByteSize;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.TimeSpan;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.places.StoredDataset;
import io.pmfs.places.Surroundings;
import io.pmfs.settings.Configuration;
import io.pmfs.settings.MountOption;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code pmfs cache}: the copies on this machine, whether mounted or not, and their removal. */
@Command(
    name = "cache",
    description = {
      "Lists the datasets that have copies on this machine, mounted or not, and removes them.",
      "%nSearches the tiers and state directories of the configuration and of its sections for"
          + " mount points, the default places, and all places that this user's mounts have used on"
          + " this machine. Removing copies never touches the source. Mounted datasets are not"
          + " removed, nor are files of a writable mount that are not at the source yet.%n"
    },
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs cache",
      "  pmfs cache --purge /lustre/imagenet          the copies and the state of one dataset",
      "  pmfs cache --purge --unused-for 30d --dry-run",
      "  pmfs cache --purge --keep 200G               least recently used ones, until 200G are"
          + " left",
      "  pmfs cache --purge --all"
    })
public final class CacheCommand implements Callable<Integer> {
  private static final Gson GSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().serializeNulls().create();

  private static final String WRITTEN =
      "a writable mount: some changes may not be at the source yet; see pmfs status";

  private final Invocation invocation;

  @Parameters(
      arity = "0..*",
      paramLabel = "DATASET",
      description = "Only these datasets: the path of a source, or a name in the list.")
  private List<String> wanted = new ArrayList<>();

  @Option(names = "--json", description = "Print one JSON array.")
  private boolean json;

  @Option(names = "--purge", description = "Remove copies and state instead of listing them.")
  private boolean purge;

  @Option(names = "--all", description = "With --purge: remove all datasets.")
  private boolean all;

  @Option(
      names = "--unused-for",
      paramLabel = "TIME",
      description = "Only datasets that no mount has used for so long, such as 30d.")
  private @Nullable String unusedFor;

  @Option(
      names = "--keep",
      paramLabel = "SIZE",
      description = "With --purge: remove least recently used datasets until this size is left.")
  private @Nullable String keep;

  @Option(names = "--dry-run", description = "With --purge: only show what would be removed.")
  private boolean dryRun;

  @Option(
      names = "--tier",
      paramLabel = "KIND:PATH",
      description = "Search this tier instead of those of the configuration.")
  private List<String> tiers = new ArrayList<>();

  @Option(
      names = "--state-dir",
      paramLabel = "DIR",
      description = "Search this state directory instead of that of the configuration.")
  private @Nullable String stateDirectory;

  @Option(names = "--config", paramLabel = "FILE", description = "Configuration file.")
  private @Nullable String config;

  public CacheCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    boolean isSelected = !wanted.isEmpty() || all || unusedFor != null || keep != null;
    if (purge && !isSelected) {
      throw MountFailure.usage(
          "--purge: no datasets chosen; name them, or give --unused-for, --keep or --all");
    }
    if (!purge && (all || keep != null || dryRun)) {
      throw MountFailure.usage("--all, --keep and --dry-run choose what to remove; add --purge");
    }
    boolean isGiven = !tiers.isEmpty() || stateDirectory != null;
    CacheContents contents =
        CacheContents.of(
            configurations(),
            invocation.surroundings(),
            isGiven ? null : new KnownPlaces(invocation.surroundings()));
    List<Dataset> datasets = selected(contents.datasets());
    if (purge) {
      return purge(contents, datasets);
    }
    if (json) {
      invocation.showJson(GSON.toJson(toJson(datasets)));
    } else {
      invocation.show(toText(datasets));
    }
    return ExitStatus.DONE;
  }

  private List<Configuration> configurations() throws MountFailure {
    Map<MountOption<?>, List<String>> given = new LinkedHashMap<>();
    if (!tiers.isEmpty()) {
      given.put(MountOption.TIER, tiers);
    }
    if (stateDirectory != null) {
      given.put(MountOption.STATE_DIR, List.of(stateDirectory));
    }
    return Configuration.ofAllMounts(
        new Configuration.Request(given, config, null, null), invocation.surroundings());
  }

  private List<Dataset> selected(List<Dataset> found) throws MountFailure {
    List<Dataset> chosen = wanted.isEmpty() ? found : named(found);
    if (unusedFor != null) {
      Duration unused = MountFailure.parsing("--unused-for", unusedFor, TimeSpan::parse);
      Instant limit = invocation.clock().instant().minus(unused);
      chosen = chosen.stream().filter(dataset -> dataset.lastUsed().isBefore(limit)).toList();
    }
    return keep == null
        ? chosen
        : beyond(chosen, MountFailure.parsing("--keep", keep, ByteSize::parse));
  }

  private List<Dataset> named(List<Dataset> found) throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    List<Dataset> chosen = new ArrayList<>();
    for (String word : wanted) {
      String path = surroundings.resolveLinks(surroundings.resolve(word)).toString();
      List<Dataset> same =
          found.stream()
              .filter(dataset -> dataset.name().equals(word) || path.equals(dataset.source()))
              .toList();
      if (same.isEmpty()) {
        throw MountFailure.usage(
            word
                + ": no copies or state of this dataset are on this machine; "
                + (word.equals("purge")
                    ? "to remove copies, write pmfs cache --purge DATASET"
                    : "see pmfs cache"));
      }
      chosen.addAll(same);
    }
    return chosen;
  }

  /** The least recently used datasets to remove so that the others fit. */
  private static List<Dataset> beyond(List<Dataset> newestFirst, long limit) {
    long bytes = newestFirst.stream().mapToLong(Dataset::bytes).sum();
    List<Dataset> chosen = new ArrayList<>();
    for (int i = newestFirst.size() - 1; i >= 0 && bytes > limit; i--) {
      Dataset dataset = newestFirst.get(i);
      if (!dataset.isInUse() && !dataset.isUnsaved()) {
        chosen.add(dataset);
        bytes -= dataset.bytes();
      }
    }
    return chosen;
  }

  private int purge(CacheContents contents, List<Dataset> datasets) throws MountFailure {
    long bytes = 0;
    int count = 0;
    Users users = new Users();
    for (Dataset dataset : datasets) {
      if (dataset.isInUse() && wanted.isEmpty()) {
        invocation.say(title(dataset) + ": kept: in use, " + users.of(dataset));
        continue;
      }
      if (dataset.isUnsaved() && wanted.isEmpty()) {
        invocation.say(title(dataset) + ": kept: " + dataset.unsaved());
        continue;
      }
      if (!dryRun) {
        contents.purge(dataset);
      }
      bytes += dataset.bytes();
      count++;
      invocation.say(
          "%s: %s %s"
              .formatted(
                  title(dataset),
                  ByteSize.format(dataset.bytes()),
                  dryRun ? "would be removed" : "removed"));
    }
    invocation.say(
        "%s %s in %d %s"
            .formatted(
                dryRun ? "would free" : "freed",
                ByteSize.format(bytes),
                count,
                count == 1 ? "dataset" : "datasets"));
    return ExitStatus.DONE;
  }

  private static String title(Dataset dataset) {
    String source = dataset.source();
    return source == null ? dataset.name() : source;
  }

  /** The mounts, present and detached, that use each source. */
  private final class Users {
    private final Map<String, String> mounted = new HashMap<>();
    private final Map<String, String> detached = new HashMap<>();

    Users() throws MountFailure {
      KnownMounts knownMounts = KnownMounts.open(invocation.surroundings());
      for (DaemonRecord entry : knownMounts.running()) {
        mounted.merge(entry.source(), entry.mountpoint(), Users::both);
      }
      for (DaemonRecord entry : knownMounts.detached()) {
        detached.merge(entry.source(), entry.mountpoint(), Users::both);
      }
    }

    private static String both(String one, String other) {
      return one + ", " + other;
    }

    @Nullable String mountpoint(Dataset dataset) {
      return mounted.get(String.valueOf(dataset.source()));
    }

    @Nullable String detachedFrom(Dataset dataset) {
      return detached.get(String.valueOf(dataset.source()));
    }

    String of(Dataset dataset) {
      if (!dataset.isInUse()) {
        return "not mounted";
      }
      String on = mountpoint(dataset);
      String from = detachedFrom(dataset);
      if (from != null) {
        return (on == null ? "" : "on " + on + ", ")
            + "detached from "
            + from
            + " with files still open";
      }
      return on == null ? "mounted" : "on " + on;
    }
  }

  private String toText(List<Dataset> datasets) throws MountFailure {
    if (datasets.isEmpty()) {
      return "no copies on this machine";
    }
    Users users = new Users();
    Instant now = invocation.clock().instant();
    StringBuilder text = new StringBuilder();
    for (Dataset dataset : datasets) {
      text.append(
          "%s%n  %s, used %s, %s; named %s%n"
              .formatted(
                  title(dataset),
                  ByteSize.format(dataset.bytes()),
                  ago(dataset.lastUsed(), now),
                  users.of(dataset),
                  dataset.name()));
      if (dataset.isUnsaved()) {
        text.append("  %s%n".formatted(dataset.isInUse() ? WRITTEN : dataset.unsaved()));
      }
      for (StoredDataset stored : dataset.stored()) {
        text.append(
            "  %-9s %s:%s%n"
                .formatted(ByteSize.format(stored.bytes()), stored.what(), stored.where()));
      }
    }
    long bytes = datasets.stream().mapToLong(Dataset::bytes).sum();
    return text.append(
            "%s in %d %s"
                .formatted(
                    ByteSize.format(bytes),
                    datasets.size(),
                    datasets.size() == 1 ? "dataset" : "datasets"))
        .toString();
  }

  private static String ago(Instant then, Instant now) {
    Duration span = Duration.between(then, now);
    return span.compareTo(Duration.ofMinutes(1)) < 0 ? "just now" : TimeSpan.format(span) + " ago";
  }

  private List<Map<String, Object>> toJson(List<Dataset> datasets) throws MountFailure {
    Users users = new Users();
    List<Map<String, Object>> objects = new ArrayList<>();
    for (Dataset dataset : datasets) {
      Map<String, Object> object = new LinkedHashMap<>();
      object.put("name", dataset.name());
      object.put("source", dataset.source());
      object.put("bytes", dataset.bytes());
      object.put("lastUsed", dataset.lastUsed().toString());
      object.put("inUse", dataset.isInUse());
      object.put("notAtSource", dataset.isUnsaved());
      object.put("mountpoint", users.mountpoint(dataset));
      object.put("detachedFrom", users.detachedFrom(dataset));
      List<Map<String, Object>> places = new ArrayList<>();
      for (StoredDataset stored : dataset.stored()) {
        Map<String, Object> place = new LinkedHashMap<>();
        place.put("kind", stored.what());
        place.put("path", stored.where().toString());
        place.put("bytes", stored.bytes());
        place.put("inUse", stored.isInUse());
        places.add(place);
      }
      object.put("places", places);
      objects.add(object);
    }
    return objects;
  }
}
