package io.pmfs.cli;

import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.process.Version;
import io.pmfs.fuse.system.DirectoryStore;
import io.pmfs.machine.ByteSize;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.pack.PackCheck;
import io.pmfs.pack.PackCompression;
import io.pmfs.pack.PackException;
import io.pmfs.pack.PackManifest;
import io.pmfs.pack.PackOrder;
import io.pmfs.pack.PackProgress;
import io.pmfs.pack.PackResult;
import io.pmfs.pack.PackSettings;
import io.pmfs.pack.Packer;
import io.pmfs.pack.Unreadable;
import io.pmfs.places.GivenPath;
import io.pmfs.places.Surroundings;
import io.pmfs.posix.FsException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code pmfs pack}: writes a source as tar shards with an index, and checks such shards. */
@Command(
    name = "pack",
    description = "Writes a dataset as tar shards with an index and a manifest.%n",
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs pack /lustre/imagenet /lustre/imagenet-shards",
      "  pmfs pack /data /shards --compression zstd --sort shuffle:42",
      "  pmfs pack /data /shards --dry-run",
      "  pmfs pack --check /shards",
      "  pmfs mount /lustre/imagenet-shards /mnt/dataset",
      "",
      "To continue an interrupted pack, run the same command again."
    },
    exitCodeListHeading = ExitStatuses.HEADING,
    exitCodeList = {
      "0:done",
      "1:not complete: run it again",
      "2:wrong usage, or a source or directory that cannot be used",
      "4:complete except for what --skip-unreadable left out, or --check found an error"
    })
final class PackCommand implements Callable<Integer> {
  private static final int LISTED_LINES = 20;

  private final Invocation invocation;

  @Parameters(
      index = "0",
      paramLabel = "SOURCE",
      description = "The directory to pack, or, with --check, the directory to check.")
  private String sourceText;

  @Parameters(
      index = "1",
      arity = "0..1",
      paramLabel = "DIRECTORY",
      description = "Where to write shards: absent, empty, or left by an interrupted pack.")
  private @Nullable String directoryText;

  @Option(
      names = "--shard-size",
      paramLabel = "SIZE",
      defaultValue = "1GiB",
      description = "Largest size of a shard, before compression (default ${DEFAULT-VALUE}).")
  private String shardSize;

  @Option(
      names = "--compression",
      paramLabel = "none|zstd[:LEVEL]",
      defaultValue = "none",
      description = "zstd writes .tar.zst in the seekable format (default ${DEFAULT-VALUE}).")
  private String compression;

  @Option(
      names = "--sort",
      paramLabel = "name|size|shuffle:SEED",
      defaultValue = "name",
      description = "Order of files in shards (default ${DEFAULT-VALUE}).")
  private String sort;

  @Option(
      names = "--jobs",
      paramLabel = "N",
      description =
          "Read N files at once, 1 to 1024 (default: the number of processors, but at least "
              + PackSettings.LEAST_DEFAULT_JOBS
              + ", which hides the latency of a remote source).")
  private @Nullable Integer jobs;

  @Option(
      names = "--skip-unreadable",
      description = "Leave out what cannot be read, and list it in the manifest.")
  private boolean skipUnreadable;

  @Option(names = "--dry-run", description = "Only show what would be written.")
  private boolean dryRun;

  @Option(names = "--check", description = "Compare shards with their sizes and checksums.")
  private boolean check;

  PackCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    PackProgress progress = new PackProgress();
    int cores = Runtime.getRuntime().availableProcessors();
    try (PackDisplay display = PackDisplay.start(invocation, progress)) {
      return call(cores, progress, display);
    } catch (OutOfMemoryError e) {
      throw new MountFailure(
          ExitStatus.FAILED, "too many files for the memory; set PMFS_HEAP, for example to 1g", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new MountFailure(ExitStatus.FAILED, "interrupted; run it again to continue", e);
    }
  }

  private int call(int cores, PackProgress progress, PackDisplay display)
      throws MountFailure, InterruptedException {
    String target = directoryText;
    try {
      if (check) {
        return check(target == null ? sourceText : target, cores, progress, display);
      }
      if (target == null) {
        throw MountFailure.usage("no DIRECTORY to pack to; see pmfs pack --help");
      }
      return pack(settings(target, cores), cores, progress, display);
    } catch (CancellationException e) {
      throw new MountFailure(display.exitStatus(), "interrupted; run it again to continue", e);
    }
  }

  private PackSettings settings(String target, int cores) throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    Path source =
        surroundings.resolveLinks(
            MountFailure.parsing(
                "source", sourceText, text -> GivenPath.ofSource(text, surroundings)));
    Path directory = surroundings.resolveLinks(surroundings.resolve(target));
    if (!Files.isDirectory(source)) {
      throw MountFailure.usage(source + ": source: no such directory; check the path");
    }
    if (directory.startsWith(source)) {
      throw MountFailure.usage(
          directory + ": lies inside the source " + source + "; name a directory outside of it");
    }
    try {
      return new PackSettings(
          source.toString(),
          directory,
          ByteSize.parse(shardSize),
          PackCompression.parse(compression),
          PackOrder.parse(sort),
          jobs == null ? PackSettings.defaultJobs(cores) : jobs,
          skipUnreadable,
          Version.get());
    } catch (IllegalArgumentException e) {
      throw new MountFailure(ExitStatus.USAGE, e.getMessage() + "; see pmfs pack --help", e);
    }
  }

  private int pack(PackSettings settings, int cores, PackProgress progress, PackDisplay display)
      throws MountFailure, InterruptedException {
    try (DirectoryStore source = new DirectoryStore(Path.of(settings.source()))) {
      Packer packer = new Packer(source, settings, DirectoryStore::new, cores, progress);
      PackResult result = dryRun ? packer.plan() : packer.run();
      display.close();
      return report(result, settings, display);
    } catch (PackException e) {
      throw new MountFailure(ExitStatus.USAGE, String.valueOf(e.getMessage()), e);
    } catch (FsException e) {
      throw new MountFailure(ExitStatus.USAGE, settings.source() + ": source: " + Reason.of(e), e);
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: cannot be written: %s; fix that and run it again to continue"
              .formatted(settings.directory(), Reason.of(e)),
          e);
    }
  }

  private int report(PackResult result, PackSettings settings, PackDisplay display)
      throws MountFailure {
    warn("left out: a tar file cannot hold a socket", result.sockets());
    warn("", result.unreadable().stream().map(PackCommand::line).toList());
    PackManifest manifest = result.manifest();
    if (manifest == null) {
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: not complete: %,d could not be read; run it again, with --skip-unreadable to leave"
                  .formatted(settings.directory(), result.unreadable().size())
              + " them out");
    }
    if (dryRun) {
      for (PackManifest.Shard shard : manifest.shards()) {
        invocation
            .out()
            .println(
                "%s  %,15d bytes  %,9d members"
                    .formatted(shard.name(), shard.size(), shard.members()));
      }
    }
    invocation.say(
        PackSummary.of(manifest, settings, result.keptShards(), display.elapsed(), dryRun));
    return result.unreadable().isEmpty() ? ExitStatus.DONE : ExitStatus.PARTLY;
  }

  private static String line(Unreadable one) {
    return one.path() + ": cannot be read: " + one.reason();
  }

  private void warn(String what, List<String> paths) {
    paths.stream()
        .limit(LISTED_LINES)
        .forEach(path -> invocation.warn(what.isEmpty() ? path : path + ": " + what));
    if (paths.size() > LISTED_LINES) {
      invocation.warn("... and %,d more".formatted(paths.size() - LISTED_LINES));
    }
  }

  private int check(String text, int cores, PackProgress progress, PackDisplay display)
      throws MountFailure, InterruptedException {
    Surroundings surroundings = invocation.surroundings();
    Path directory = surroundings.resolveLinks(surroundings.resolve(text));
    try {
      List<String> wrong = PackCheck.of(directory, cores, progress);
      display.close();
      wrong.forEach(line -> invocation.warn(directory + "/" + line));
      invocation.say(
          "%s: %,d shards checked, %s, %d wrong"
              .formatted(
                  directory,
                  progress.totalFiles(),
                  ByteSize.format(progress.totalBytes()),
                  wrong.size()));
      return wrong.isEmpty() ? ExitStatus.DONE : ExitStatus.PARTLY;
    } catch (PackException e) {
      throw new MountFailure(ExitStatus.USAGE, String.valueOf(e.getMessage()), e);
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, directory + ": cannot be read: " + Reason.of(e), e);
    }
  }
}
