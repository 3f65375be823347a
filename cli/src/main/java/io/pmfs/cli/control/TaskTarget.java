package io.pmfs.cli.control;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.NativeText;
import io.pmfs.metadata.FileName;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.places.Surroundings;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A command's PATHs resolved to one running mount and paths below its dataset's root. */
public record TaskTarget(DatasetPaths dataset, List<FileName> paths) {

  /** Finds the mount that serves all of these paths. */
  public static TaskTarget find(
      List<String> texts, KnownMounts knownMounts, Surroundings surroundings) throws MountFailure {
    try {
      return find(texts, knownMounts.mounted(), knownMounts, surroundings);
    } catch (MountFailure e) {
      if (e.exitStatus() == ExitStatus.USAGE) {
        throw e;
      }
      knownMounts.awaitAll(missed -> {});
      return find(texts, knownMounts.mounted(), knownMounts, surroundings);
    }
  }

  private static TaskTarget find(
      List<String> texts,
      List<DaemonRecord> mounts,
      KnownMounts knownMounts,
      Surroundings surroundings)
      throws MountFailure {
    List<DatasetPaths> running = mounts.stream().map(DatasetPaths::new).toList();
    DatasetPaths only = null;
    List<FileName> paths = new ArrayList<>();
    for (String text : texts) {
      String path = absolute(text, surroundings);
      DatasetPaths dataset = serving(path, running);
      if (dataset == null) {
        path = resolved(path, surroundings);
        dataset = serving(path, running);
      }
      FileName relative = dataset == null ? null : dataset.relative(path);
      if (dataset == null || relative == null) {
        throw notServed(text, path, knownMounts, surroundings);
      }
      if (only != null && !dataset.isSameAs(only)) {
        throw MountFailure.usage(
            "%s: in the mount at %s, and %s in another at %s; give paths of one mount at a time"
                .formatted(
                    texts.get(0), only.mount().mountpoint(), text, dataset.mount().mountpoint()));
      }
      only = dataset;
      paths.add(relative);
    }
    if (only == null) {
      throw MountFailure.usage("no path given");
    }
    return new TaskTarget(only, paths);
  }

  /** A path of a known mount: below its mount point or source, or else relative to its root. */
  public static FileName in(DaemonRecord mount, String text, Surroundings surroundings)
      throws MountFailure {
    DatasetPaths dataset = new DatasetPaths(mount);
    String path = absolute(text, surroundings);
    FileName found = dataset.relative(path);
    if (found == null) {
      found = dataset.relative(resolved(path, surroundings));
    }
    if (found == null) {
      found = dataset.listed(latin1(text));
    }
    if (found == null) {
      throw MountFailure.usage(text + ": not below " + mount.mountpoint());
    }
    return found;
  }

  /** A path relative to the root of a mount that has ended. */
  public static FileName inRoot(String text) {
    return FileName.ofLatin1(DatasetPaths.normal("/" + latin1(text)).substring(1));
  }

  /** Whether the paths are the whole dataset. */
  public boolean isWhole() {
    return paths.size() == 1 && paths.get(0).size() == 0;
  }

  private static String absolute(String text, Surroundings surroundings) {
    String path = latin1(text);
    String directory = latin1(surroundings.workingDirectory().toString());
    return DatasetPaths.normal(path.startsWith("/") ? path : directory + "/" + path);
  }

  private static String latin1(String text) {
    return new String(NativeText.bytes(text), ISO_8859_1);
  }

  /** The path without symbolic links; unchanged if Java cannot represent it. */
  private static String resolved(String path, Surroundings surroundings) {
    try {
      Path links = Path.of(FileName.ofLatin1(path).toString());
      String resolved = surroundings.resolveLinks(links).toString();
      return DatasetPaths.normal(latin1(resolved));
    } catch (InvalidPathException e) {
      return path;
    }
  }

  private static @Nullable DatasetPaths serving(String path, List<DatasetPaths> running)
      throws MountFailure {
    DatasetPaths best = null;
    int longest = -1;
    DatasetPaths rival = null;
    for (DatasetPaths dataset : running) {
      int match = dataset.match(path);
      if (match > longest) {
        best = dataset;
        longest = match;
        rival = null;
      } else if (best != null && match == longest && match >= 0 && !dataset.isSameAs(best)) {
        rival = dataset;
      }
    }
    if (best != null && rival != null) {
      throw MountFailure.usage(
          "%s: the source of the mounts at %s and at %s; name it below one of them"
              .formatted(
                  FileName.ofLatin1(path), best.mount().mountpoint(), rival.mount().mountpoint()));
    }
    return best;
  }

  private static MountFailure notServed(
      String text, String path, KnownMounts knownMounts, Surroundings surroundings)
      throws MountFailure {
    try {
      MountTable.Mount mount =
          surroundings.mounts().holding(Path.of(FileName.ofLatin1(path).toString()));
      if (mount != null && mount.isPmfs()) {
        return knownMounts.absence(mount.mountpoint());
      }
      MountFailure detached = knownMounts.detachment(Path.of(FileName.ofLatin1(path).toString()));
      if (detached != null) {
        return detached;
      }
    } catch (InvalidPathException e) {
      // A missing path is not in the mount table.
    }
    return new MountFailure(
        ExitStatus.NOT_MOUNTED,
        text + ": not in a dataset mounted by pmfs; pmfs status lists the mounts");
  }
}
