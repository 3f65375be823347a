package io.pmfs.daemon;

import io.pmfs.fuse.DirectoryStore;
import io.pmfs.metadata.FileName;
import io.pmfs.settings.SourceIdentity;
import io.pmfs.settings.SourceIdentity.Form;
import io.pmfs.settings.SourceSettings;
import io.pmfs.shards.ShardException;
import io.pmfs.shards.ShardSet;
import io.pmfs.shards.ShardSource;
import io.pmfs.shards.ShardStore;
import io.pmfs.tier.BackingStore;
import io.pmfs.tier.CountedBackingStore;
import io.pmfs.tier.DirectMemory;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.tier.ReopenedStore;
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

/** The source of a mount, and in which form it is shown: its files, or what tar files hold. */
final class DatasetSource implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(DatasetSource.class);

  private static final String DIRECTORY = "directory";
  private static final String INDEX = "shards.index";

  private final SourceSettings settings;
  private final Form form;
  private final String root;
  private final CountedBackingStore files;
  private final @Nullable ShardSet shards;

  /** Of a session that goes on: what it began with, and its directory. */
  private final @Nullable SourceIdentity began;

  private final @Nullable ReopenedStore reopened;
  private @Nullable BackingStore unpacked;

  private DatasetSource(
      SourceSettings settings,
      Form form,
      String root,
      CountedBackingStore files,
      @Nullable ShardSet shards,
      @Nullable SourceIdentity began,
      @Nullable ReopenedStore reopened) {
    this.settings = settings;
    this.form = form;
    this.root = root;
    this.files = files;
    this.shards = shards;
    this.began = began;
    this.reopened = reopened;
  }

  /**
   * Opens the directory that was named, or that of the tar file that was, and looks what is there.
   */
  static DatasetSource open(SourceSettings settings) throws FsException, ShardException {
    Path source = settings.path();
    boolean file = !settings.form().equals(DIRECTORY) && Files.isRegularFile(source);
    DirectoryStore directory = new DirectoryStore(file ? parent(source) : source);
    CountedBackingStore files = new CountedBackingStore(directory);
    boolean complete = false;
    try {
      ShardSet shards =
          file
              ? shardOf(settings, files)
              : settings.form().equals(DIRECTORY)
                  ? null
                  : shardsOf(settings, files, settings.form().equals("tar"));
      Form form = file ? Form.TAR : shards == null ? Form.DIRECTORY : Form.TARS;
      complete = true;
      return new DatasetSource(settings, form, directory.identity(), files, shards, null, null);
    } finally {
      if (!complete) {
        files.close();
      }
    }
  }

  /** Begins to open the source that a session began with, which may be away; waits for nothing. */
  static DatasetSource reopen(SourceSettings settings, SourceIdentity began) {
    Path place = began.form() == Form.TAR ? parent(settings.path()) : settings.path();
    ReopenedStore directory = inBackground(settings, () -> openDirectory(place, began.root()));
    return new DatasetSource(
        settings,
        began.form(),
        began.root(),
        new CountedBackingStore(directory),
        null,
        began,
        directory);
  }

  private static Path parent(Path file) {
    return Objects.requireNonNull(file.getParent());
  }

  private static ReopenedStore inBackground(SourceSettings settings, ReopenedStore.Opener opener) {
    return new ReopenedStore(
        opener,
        task -> {
          Thread thread = new Thread(task, "source");
          thread.setDaemon(true);
          thread.start();
        },
        time -> Thread.sleep(time.toMillis()),
        new SplittableRandom(),
        line -> log.warn("{}: source: {}", settings.path(), line));
  }

  /** The directory, if it is the one that the session began with. */
  private static BackingStore openDirectory(Path place, String identity) throws FsException {
    DirectoryStore directory;
    try {
      directory = new DirectoryStore(place);
    } catch (FsException e) {
      // That no directory is there says nothing of the files below it: the kernel, who would keep
      // in mind that these do not exist, must not be told so.
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
    return "%s is another directory than the mounted one (%s instead of %s)"
        .formatted(place, directory.identity(), identity);
  }

  private static ShardSet shardOf(SourceSettings settings, BackingStore files)
      throws FsException, ShardException {
    FileName name = FileName.of(String.valueOf(settings.path().getFileName()));
    return ShardSet.ofFile(files, name, settings.nested());
  }

  private static @Nullable ShardSet shardsOf(
      SourceSettings settings, BackingStore files, boolean asked)
      throws FsException, ShardException {
    return ShardSet.ofDirectory(files, asked, settings.nested());
  }

  /** Different for each source and form: what is kept of one must not be taken for another's. */
  String identity() {
    String path = settings.path().toString();
    return form == Form.DIRECTORY ? path : path + (settings.nested() ? "//tar+nested" : "//tar");
  }

  /** What a later daemon of the session compares the source with; once the store was opened. */
  SourceIdentity sourceIdentity() {
    return began != null
        ? began
        : new SourceIdentity(
            form, root, unpacked instanceof ShardStore store ? store.fingerprint() : null);
  }

  /**
   * What lies at the source's path instead of the directory that the mount began with; null if it
   * is the same, is away, or does not answer in time.
   */
  @Nullable String replacement(Duration limit) throws InterruptedException {
    Path place = form == Form.TAR ? parent(settings.path()) : settings.path();
    CompletableFuture<@Nullable String> answer = new CompletableFuture<>();
    Thread looking = new Thread(() -> answer.complete(otherAt(place)), "source-check");
    looking.setDaemon(true);
    looking.start();
    try {
      return answer.get(limit.toMillis(), TimeUnit.MILLISECONDS);
    } catch (ExecutionException | TimeoutException e) {
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

  /** Why the source is away; null if it is not, or if it was there when the mount began. */
  @Nullable String absence() {
    if (reopened == null) {
      return null;
    }
    String reason = reopened.absence();
    return reason == null && unpacked instanceof ReopenedStore store ? store.absence() : reason;
  }

  /** What the mount shows if that is not the files of the source; else empty. */
  String description() {
    return shards == null
        ? ""
        : "what is in %s, unpacked; --source-form directory shows %s"
            .formatted(
                shards.count() == 1 ? "its tar file" : "its " + shards.count() + " tar files",
                shards.count() == 1 ? "the file itself" : "the files themselves");
  }

  /** What is asked of the files of the source. */
  CountedBackingStore files() {
    return files;
  }

  /**
   * What is shown, to be closed with this source.
   *
   * @param state where an index may be kept
   * @param memory for what is read of tar files
   * @param notice takes lines for whoever waits
   */
  BackingStore store(Path state, DirectMemory memory, Consumer<String> notice)
      throws FsException, ShardException {
    BackingStore opened;
    if (form == Form.DIRECTORY) {
      return files;
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
    List<Path> indices = new ArrayList<>();
    if (set.isPacked()) {
      indices.add(besideShards());
    }
    indices.add(state.resolve(INDEX));
    IndexReport report = new IndexReport(settings.path(), notice);
    return ShardSource.open(files, set, indices, settings.metadataThreads(), memory, report);
  }

  private Path besideShards() {
    return settings.path().resolve(ShardSet.INDEX.toString());
  }

  /** By the index that the session began with; only if that is lost the source is looked at. */
  private BackingStore reopenShards(
      SourceIdentity before, Path state, DirectMemory memory, Consumer<String> notice)
      throws FsException {
    String fingerprint = String.valueOf(before.shards());
    List<Path> indices = List.of(state.resolve(INDEX), besideShards());
    ShardStore kept = ShardSource.reopen(files, indices, fingerprint, memory);
    if (kept != null) {
      return kept;
    }
    try {
      ShardSet set = form == Form.TAR ? shardOf(settings, files) : shardsOf(settings, files, true);
      ShardStore built = openShards(Objects.requireNonNull(set), state, memory, notice);
      if (built.fingerprint().equals(fingerprint)) {
        return built;
      }
      built.close();
      throw new FsException(Errno.EIO, "its tar files are others than the mounted ones");
    } catch (ShardException e) {
      throw new FsException(Errno.EIO, String.valueOf(e.getMessage()), e);
    }
  }

  @Override
  public void close() {
    if (unpacked != null) {
      unpacked.close();
    }
    files.close();
  }
}
