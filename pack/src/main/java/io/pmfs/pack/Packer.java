package io.pmfs.pack;

import io.pmfs.compression.ZstdCodec;
import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.FileName;
import io.pmfs.pack.PackDirectory.Finished;
import io.pmfs.pack.PackManifest.Counts;
import io.pmfs.pack.PackProgress.Phase;
import io.pmfs.pack.ShardWriter.Outcome;
import io.pmfs.posix.FsException;
import io.pmfs.shards.IndexBuilder;
import io.pmfs.shards.IndexForm;
import io.pmfs.shards.ShardException;
import io.pmfs.source.BackingStore;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Packs a source: lists it, plans the shards, writes those that an interrupted run did not finish,
 * several at once, and finally the index and the manifest.
 */
public final class Packer {
  /** For each file that is read at once: one piece being read and one being written. */
  private static final int PIECES_PER_JOB = 2;

  private static final int PIECE_BYTES = 1 << 20;
  private static final int MAX_BUFFER_BYTES = 256 << 20;

  /** Opens a directory as a store, to read the written shards. */
  @FunctionalInterface
  public interface Stores {
    BackingStore open(Path directory) throws FsException;
  }

  private final BackingStore source;
  private final PackSettings settings;
  private final Stores stores;
  private final int cores;
  private final PackProgress progress;

  /**
   * Prepares a pack.
   *
   * @param cores shards that are written at once
   */
  public Packer(
      BackingStore source, PackSettings settings, Stores stores, int cores, PackProgress progress) {
    this.source = source;
    this.settings = settings;
    this.stores = stores;
    this.cores = cores;
    this.progress = progress;
  }

  /** Lists the source and plans the shards; writes nothing. Sizes are before compression. */
  public PackResult plan() throws PackException, IOException, FsException, InterruptedException {
    PackDirectory.check(settings.directory());
    SourceTree tree = new SourceWalk(source, settings.jobs(), progress).run();
    List<Finished> shards =
        PackPlan.of(tree, settings.order(), settings.shardBytes()).stream()
            .map(s -> new Finished(planned(s), "", s.counts(), s.contentBytes(), List.of()))
            .toList();
    return new PackResult(manifest(tree, shards), 0, tree.unreadable(), tree.sockets());
  }

  private PackManifest.Shard planned(PlannedShard shard) {
    return new PackManifest.Shard(
        nameOf(shard), shard.tarBytes(), shard.tarBytes(), shard.counts().total(), "");
  }

  /**
   * Packs.
   *
   * @throws PackException if the directory cannot be used
   * @throws FsException if the source cannot be read at all
   * @throws IOException if writing failed; another run continues
   * @throws java.util.concurrent.CancellationException if it was cancelled; another run continues
   */
  public PackResult run() throws PackException, IOException, FsException, InterruptedException {
    try (PackDirectory directory = PackDirectory.open(settings)) {
      SourceTree tree = new SourceWalk(source, settings.jobs(), progress).run();
      List<PlannedShard> shards = PackPlan.of(tree, settings.order(), settings.shardBytes());
      Set<PlannedShard> kept = kept(directory, shards);
      List<Unreadable> unreadable = new ArrayList<>(tree.unreadable());
      unreadable.addAll(write(directory, shards, kept));
      if (!unreadable.isEmpty() && !settings.skipUnreadable()) {
        return new PackResult(null, kept.size(), unreadable, tree.sockets());
      }
      List<Finished> finished =
          shards.stream().map(s -> Objects.requireNonNull(directory.finished(nameOf(s)))).toList();
      PackManifest manifest = manifest(tree, finished);
      index(manifest);
      directory.complete(manifest);
      return new PackResult(manifest, kept.size(), manifest.leftOut(), tree.sockets());
    }
  }

  /** Writes the index, for which it reads all shards once. */
  private void index(PackManifest manifest) throws IOException {
    // A directory may be a member of several shards.
    long members = manifest.shards().stream().mapToLong(PackManifest.Shard::members).sum();
    progress.enter(Phase.INDEXING, members, manifest.size());
    List<FileName> names = manifest.shards().stream().map(s -> FileName.of(s.name())).toList();
    try (BackingStore target = stores.open(settings.directory())) {
      new IndexBuilder(
              target,
              new IndexForm(true, false),
              cores,
              p -> {
                progress.checkNotCancelled();
                progress.reached(p.members(), p.bytes());
              },
              new DirectMemory())
          .build(names, settings.directory().resolve(PackDirectory.INDEX));
    } catch (ShardException | FsException e) {
      throw new IOException(e.getMessage(), e);
    }
  }

  private String nameOf(PlannedShard shard) {
    return shard.name() + settings.compression().suffix();
  }

  /** The shards that an earlier run finished and that match the plan and their checksums. */
  private Set<PlannedShard> kept(PackDirectory directory, List<PlannedShard> shards)
      throws IOException, InterruptedException {
    Set<PlannedShard> kept = Collections.synchronizedSet(new HashSet<>());
    List<PlannedShard> candidates =
        shards.stream().filter(s -> isCurrent(s, directory.finished(nameOf(s)))).toList();
    progress.enter(
        Phase.CHECKING,
        candidates.size(),
        candidates.stream().mapToLong(s -> of(directory, s).shard().size()).sum());
    Parallel.forEach(
        candidates,
        cores,
        () ->
            shard -> {
              PackManifest.Shard expected = of(directory, shard).shard();
              Path file = directory.file(expected.name());
              if (PackCheck.difference(file, expected, progress) == null) {
                kept.add(shard);
              }
            },
        progress);
    return kept;
  }

  private boolean isCurrent(PlannedShard shard, @Nullable Finished one) {
    return one != null
        && (one.leftOut().isEmpty() || settings.skipUnreadable())
        && one.plan().equals(shard.hash());
  }

  private Finished of(PackDirectory directory, PlannedShard shard) {
    return Objects.requireNonNull(directory.finished(nameOf(shard)));
  }

  /** Writes the missing shards; returns the files that could not be read. */
  private List<Unreadable> write(
      PackDirectory directory, List<PlannedShard> shards, Set<PlannedShard> kept)
      throws IOException, InterruptedException {
    progress.enter(
        Phase.PACKING,
        shards.stream().mapToLong(s -> s.files().size()).sum(),
        shards.stream().mapToLong(PlannedShard::contentBytes).sum());
    kept.forEach(s -> progress.did(s.files().size(), s.contentBytes()));
    List<PlannedShard> missing = shards.stream().filter(s -> !kept.contains(s)).toList();
    directory.removeShardsBut(Set.copyOf(kept.stream().map(this::nameOf).toList()));
    List<Unreadable> unreadable = Collections.synchronizedList(new ArrayList<>());
    int writers = Math.max(1, Math.min(cores, missing.size()));
    ExecutorService readers = Executors.newFixedThreadPool(settings.jobs());
    try (ZstdCodec codec = settings.compression().codec()) {
      Parallel.forEach(
          missing,
          writers,
          () -> {
            ShardWriter writer =
                new ShardWriter(source, codec, readers, buffers(writers), progress);
            return shard -> unreadable.addAll(write(directory, shard, writer));
          },
          progress);
    } finally {
      Parallel.stop(readers);
    }
    return List.copyOf(unreadable);
  }

  /** One writer's share of the read-ahead memory. */
  private List<ByteBuffer> buffers(int writers) {
    int all = Math.max(PIECES_PER_JOB * settings.jobs(), 2 * writers);
    int bytes = Math.min(PIECE_BYTES, MAX_BUFFER_BYTES / all);
    return Stream.generate(() -> ByteBuffer.allocateDirect(bytes))
        .limit((all + writers - 1) / writers)
        .toList();
  }

  private List<Unreadable> write(PackDirectory directory, PlannedShard shard, ShardWriter writer)
      throws IOException, InterruptedException {
    String name = nameOf(shard);
    Path temporary = directory.temporary(name);
    try {
      Outcome outcome = write(shard, temporary, writer);
      if (outcome.unreadable().isEmpty() || settings.skipUnreadable()) {
        PackManifest.Shard written =
            new PackManifest.Shard(
                name,
                outcome.size(),
                outcome.tarSize(),
                outcome.counts().total(),
                outcome.sha256());
        directory.finish(
            new Finished(
                written, shard.hash(), outcome.counts(), outcome.bytes(), outcome.unreadable()));
      }
      return outcome.unreadable();
    } finally {
      Files.deleteIfExists(temporary);
    }
  }

  /** If reading a file fails in the middle, tries again once, and then leaves the file out. */
  private static Outcome write(PlannedShard shard, Path file, ShardWriter writer)
      throws IOException, InterruptedException {
    Set<PlannedFile> brokenOff = new HashSet<>();
    Map<PlannedFile, Unreadable> leftOut = new HashMap<>();
    while (true) {
      try {
        return writer.write(shard, file, leftOut);
      } catch (BrokenOffException e) {
        if (!brokenOff.add(e.file())) {
          leftOut.put(e.file(), e.unreadable());
        }
      }
    }
  }

  private PackManifest manifest(SourceTree tree, List<Finished> shards) {
    List<Unreadable> leftOut = new ArrayList<>(tree.unreadable());
    shards.forEach(s -> leftOut.addAll(s.leftOut()));
    return new PackManifest(
        PackManifest.VERSION,
        settings.program(),
        settings.source(),
        settings.order().toString(),
        settings.compression().toString(),
        settings.shardBytes(),
        shards.stream()
            .map(Finished::counts)
            .reduce(Counts.NONE, Counts::plus)
            .withDirectories(tree.directories().size()),
        shards.stream().mapToLong(Finished::bytes).sum(),
        leftOut,
        shards.stream().map(Finished::shard).toList());
  }
}
