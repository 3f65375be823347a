package io.pmfs.daemon.dataset;

import io.pmfs.cache.CacheClient;
import io.pmfs.cache.CachedStore;
import io.pmfs.fuse.system.DirectoryStore;
import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.places.SourceIdentity;
import io.pmfs.places.SourceIdentity.Form;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.settings.SourceSettings;
import io.pmfs.shards.ShardException;
import io.pmfs.shards.ShardSet;
import io.pmfs.shards.ShardSource;
import io.pmfs.shards.ShardStore;
import io.pmfs.source.BackingStore;
import io.pmfs.source.CountedBackingStore;
import io.pmfs.source.ReopenedStore;
import io.pmfs.source.SourceFile;
import io.pmfs.stage.BorrowingStore;
import io.pmfs.stage.Lenders;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The source of a mount, and whether the mount shows its files or the members of its tar files. */
public final class DatasetSource implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(DatasetSource.class);

  private static final String AUTO = "auto";
  private static final String DIRECTORY = "directory";
  private static final String INDEX = "shards.index";

  private final SourceSettings settings;
  private final Form form;
  private final String root;
  private final CountedBackingStore files;

  /** The files, read through the cache of the node if there is one. */
  private final BackingStore read;

  private final @Nullable CacheClient cache;
  private final @Nullable ShardSet shards;

  /**
   * The number of tar files in a directory that contains nothing else; 0 if the settings choose the
   * form.
   */
  private final int tarFiles;

  /** The source that a resumed session began with; null for a new session. */
  private final @Nullable SourceIdentity began;

  private final @Nullable ReopenedStore reopened;
  private @Nullable BackingStore unpacked;

  private volatile @Nullable BorrowingStore borrowing;

  private DatasetSource(
      SourceSettings settings,
      Form form,
      String root,
      CountedBackingStore files,
      @Nullable ShardSet shards,
      int tarFiles,
      @Nullable SourceIdentity began,
      @Nullable ReopenedStore reopened) {
    this.settings = settings;
    this.form = form;
    this.root = root;
    this.files = files;
    this.cache = settings.cache() == null ? null : new CacheClient(settings.cache());
    this.read = cache == null ? files : new CachedStore(files, cache);
    this.shards = shards;
    this.tarFiles = tarFiles;
    this.began = began;
    this.reopened = reopened;
  }

  /** Opens the named directory, or that of the named tar file, and examines its content. */
  public static DatasetSource open(SourceSettings settings) throws FsException, ShardException {
    Path source = settings.path();
    boolean file = !settings.form().equals(DIRECTORY) && Files.isRegularFile(source);
    DirectoryStore directory = new DirectoryStore(file ? parent(source) : source);
    CountedBackingStore files = new CountedBackingStore(directory);
    try {
      boolean chooses = !file && settings.form().equals(AUTO);
      int tarFiles = chooses ? ShardSet.countIfAlone(files) : 0;
      ShardSet shards =
          file
              ? shardOf(settings, files)
              : unpacks(settings, files, tarFiles) ? shardsOf(settings, files) : null;
      Form form = file ? Form.TAR : shards == null ? Form.DIRECTORY : Form.TARS;
      return new DatasetSource(
          settings, form, directory.identity(), files, shards, tarFiles, null, null);
    } catch (Throwable e) {
      files.close();
      throw e;
    }
  }

  /** Whether the mount shows the content of a directory's tar files: docs/decisions/0041. */
  private static boolean unpacks(SourceSettings settings, BackingStore files, int tarFiles)
      throws FsException, ShardException {
    return switch (settings.form()) {
      case DIRECTORY -> false;
      case AUTO -> ShardSet.isPacked(files) || (settings.nested() && tarFiles > 0);
      default -> true;
    };
  }

  /** Starts opening the source that a session began with, without waiting; it may be away. */
  public static DatasetSource reopen(SourceSettings settings, SourceIdentity began) {
    Path place = began.form() == Form.TAR ? parent(settings.path()) : settings.path();
    ReopenedStore directory = inBackground(settings, () -> openDirectory(place, began.root()));
    return new DatasetSource(
        settings,
        began.form(),
        began.root(),
        new CountedBackingStore(directory),
        null,
        0,
        began,
        directory);
  }

  private static Path parent(Path file) {
    return Objects.requireNonNull(file.getParent());
  }

  private static ReopenedStore inBackground(SourceSettings settings, ReopenedStore.Opener opener) {
    return new ReopenedStore(
        opener,
        task -> DaemonThread.lasting("source", task).start(),
        time -> Thread.sleep(time.toMillis()),
        new SplittableRandom(),
        line -> log.warn("{}: source: {}", settings.path(), line));
  }

  /** Opens the directory if it is the one that the session began with. */
  private static BackingStore openDirectory(Path place, String identity) throws FsException {
    DirectoryStore directory;
    try {
      directory = new DirectoryStore(place);
    } catch (FsException e) {
      // A missing directory does not prove that its files are gone, and the kernel would cache
      // ENOENT for them.
      throw switch (e.errno()) {
        case ENOENT, ENOTDIR, ELOOP -> new FsException(Errno.EIO, place + ": " + e.errno());
        default -> e;
      };
    }
    if (directory.identity().equals(identity)) {
      return directory;
    }
    String other = otherDirectory(place, directory, identity);
    directory.close();
    throw new FsException(Errno.EIO, other);
  }

  private static String otherDirectory(Path place, DirectoryStore directory, String identity) {
    return "%s is not the directory that was mounted (%s instead of %s)"
        .formatted(place, directory.identity(), identity);
  }

  private static ShardSet shardOf(SourceSettings settings, BackingStore files)
      throws FsException, ShardException {
    FileName name = FileName.of(String.valueOf(settings.path().getFileName()));
    return ShardSet.ofFile(files, name, settings.nested());
  }

  private static ShardSet shardsOf(SourceSettings settings, BackingStore files)
      throws FsException, ShardException {
    return ShardSet.ofDirectory(files, settings.nested());
  }

  /** Differs for each source and form, so that state is never used for another one. */
  String identity() {
    String path = settings.path().toString();
    return form == Form.DIRECTORY ? path : path + (settings.nested() ? "//tar+nested" : "//tar");
  }

  /** The identity that later daemons of the session expect. Call it once the store is open. */
  public SourceIdentity sourceIdentity() {
    return began != null
        ? began
        : new SourceIdentity(
            form, root, unpacked instanceof ShardStore store ? store.fingerprint() : null);
  }

  /**
   * Describes another directory at the source's path; null if the directory is the original one, or
   * cannot be examined in time.
   */
  @Nullable
  public String replacement(Duration limit) throws InterruptedException {
    Path place = form == Form.TAR ? parent(settings.path()) : settings.path();
    CompletableFuture<@Nullable String> answer = new CompletableFuture<>();
    try {
      DaemonThread.start("source-check", () -> answer.complete(otherAt(place)));
      return answer.get(limit.toMillis(), TimeUnit.MILLISECONDS);
    } catch (ExecutionException | TimeoutException | OutOfMemoryError e) {
      return null;
    }
  }

  private @Nullable String otherAt(Path place) {
    try (DirectoryStore directory = new DirectoryStore(place)) {
      return directory.identity().equals(root) ? null : otherDirectory(place, directory, root);
    } catch (FsException away) {
      return null;
    }
  }

  /**
   * Why the source of a resumed session is unavailable; null if it is available, or for a new
   * session.
   */
  @Nullable
  public String absence() {
    if (reopened == null) {
      return null;
    }
    String reason = reopened.absence();
    return reason == null && unpacked instanceof ReopenedStore store ? store.absence() : reason;
  }

  /**
   * How a new mount shows its tar files, and how to choose the other form; empty without tar files.
   */
  String description() {
    if (shards == null) {
      return switch (tarFiles) {
        case 0 -> "";
        case 1 -> "its tar file as it is; --source-form tar shows its content";
        default ->
            "its %d tar files as they are; --source-form tar shows their content"
                .formatted(tarFiles);
      };
    } else if (form == Form.TAR) {
      return "the content of the tar file; mount its directory to see the file itself";
    } else if (shards.count() == 1) {
      return "the content of its tar file; --source-form directory shows the file itself";
    }
    return "the content of its %d tar files; --source-form directory shows the files themselves"
        .formatted(shards.count());
  }

  /** This mount's use of the node's cache; null without a cache. */
  CacheClient.@Nullable Statistics cache() {
    return cache == null ? null : cache.statistics();
  }

  /** The files of the source, with a count of the requests to them. */
  CountedBackingStore files() {
    return files;
  }

  /**
   * Adds the copies of other mounts in front of a store. Not for members of tar files, which are
   * read in sequence: a copy of one would save no read.
   */
  BackingStore borrowing(BackingStore shown, Lenders lenders, DirectMemory memory) {
    if (shown.sequenceCount() > 0) {
      return shown;
    }
    BorrowingStore store = new BorrowingStore(shown, lenders, memory);
    borrowing = store;
    return store;
  }

  /** Bytes that came from copies of other mounts. */
  long borrowedBytes() {
    BorrowingStore store = borrowing;
    return store == null ? 0 : store.borrowedBytes();
  }

  /**
   * Opens the store that the mount shows; {@link #close} closes it.
   *
   * @param state a directory for an index
   * @param memory for data read from tar files
   * @param notice takes lines for the user who waits
   */
  BackingStore store(Path state, DirectMemory memory, Consumer<String> notice)
      throws FsException, ShardException {
    BackingStore opened;
    if (form == Form.DIRECTORY) {
      return read;
    } else if (began != null) {
      opened = inBackground(settings, () -> reopenShards(began, state, memory, notice));
    } else {
      opened = openShards(Objects.requireNonNull(shards), state, memory, notice);
    }
    unpacked = opened;
    return opened;
  }

  private ShardStore openShards(
      ShardSet set, Path state, DirectMemory memory, Consumer<String> notice)
      throws FsException, ShardException {
    try (SourceFile beside = set.isPacked() ? indexBesideShards() : null) {
      List<Path> indices = new ArrayList<>();
      if (beside != null) {
        indices.add(pathOf(beside));
      }
      indices.add(state.resolve(INDEX));
      IndexReport report = new IndexReport(settings.path(), notice);
      return ShardSource.open(read, set, indices, settings.metadataThreads(), memory, report);
    }
  }

  /** The index beside the shards; null if there is none. */
  private @Nullable SourceFile indexBesideShards() {
    try {
      SourceFile index = files.open(ShardSet.INDEX);
      try {
        if (index.status().attributes().type() == FileType.REGULAR) {
          return index;
        }
        log.warn("{}/{}: not a regular file", settings.path(), ShardSet.INDEX);
      } catch (Throwable e) {
        index.close();
        throw e;
      }
      index.close();
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        log.warn("{}/{}: cannot be read: {}", settings.path(), ShardSet.INDEX, e.getMessage());
      }
    }
    return null;
  }

  /** A path to the open file, even if its name now leads elsewhere. */
  private static Path pathOf(SourceFile open) {
    return Path.of("/proc/self/fd/" + open.descriptor());
  }

  /** Uses the index that the session began with; scans the tar files only if it is lost. */
  private BackingStore reopenShards(
      SourceIdentity before, Path state, DirectMemory memory, Consumer<String> notice)
      throws FsException {
    String fingerprint = String.valueOf(before.shards());
    try (SourceFile beside = form == Form.TARS ? indexBesideShards() : null) {
      List<Path> indices = new ArrayList<>(List.of(state.resolve(INDEX)));
      if (beside != null) {
        indices.add(pathOf(beside));
      }
      ShardStore kept = ShardSource.reopen(read, indices, fingerprint, memory);
      if (kept != null) {
        return kept;
      }
    }
    try {
      ShardSet set = form == Form.TAR ? shardOf(settings, files) : shardsOf(settings, files);
      ShardStore built = openShards(set, state, memory, notice);
      if (built.fingerprint().equals(fingerprint)) {
        return built;
      }
      built.close();
      throw new FsException(Errno.EIO, "its tar files are not the ones that were mounted");
    } catch (ShardException e) {
      throw new FsException(Errno.EIO, String.valueOf(e.getMessage()), e);
    }
  }

  @Override
  public void close() {
    if (unpacked != null) {
      unpacked.close();
    }
    read.close();
  }
}
