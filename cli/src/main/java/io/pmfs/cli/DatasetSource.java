package io.pmfs.cli;

import io.pmfs.fuse.DirectoryStore;
import io.pmfs.metadata.FileName;
import io.pmfs.packing.ShardException;
import io.pmfs.packing.ShardSet;
import io.pmfs.packing.ShardSource;
import io.pmfs.tier.BackingStore;
import io.pmfs.tier.CountedBackingStore;
import io.pmfs.tier.DirectMemory;
import io.pmfs.tier.FsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** The source of a mount, and in which form it is shown: its files, or what tar files hold. */
final class DatasetSource implements AutoCloseable {
  private static final String DIRECTORY = "directory";
  private static final String INDEX = "shards.index";

  private final MountSettings settings;
  private final CountedBackingStore files;
  private final @Nullable ShardSet shards;
  private @Nullable BackingStore unpacked;

  private DatasetSource(
      MountSettings settings, CountedBackingStore files, @Nullable ShardSet shards) {
    this.settings = settings;
    this.files = files;
    this.shards = shards;
  }

  /**
   * Opens the directory that was named, or that of the tar file that was, and looks what is there.
   */
  static DatasetSource open(MountSettings settings) throws FsException, ShardException {
    Path source = settings.source();
    boolean file = !settings.sourceForm().equals(DIRECTORY) && Files.isRegularFile(source);
    Path directory = file ? Objects.requireNonNull(source.getParent()) : source;
    CountedBackingStore files = new CountedBackingStore(new DirectoryStore(directory));
    boolean complete = false;
    try {
      ShardSet shards = shards(settings, files, file);
      complete = true;
      return new DatasetSource(settings, files, shards);
    } finally {
      if (!complete) {
        files.close();
      }
    }
  }

  private static @Nullable ShardSet shards(MountSettings settings, BackingStore files, boolean file)
      throws FsException, ShardException {
    if (file) {
      FileName name = FileName.of(String.valueOf(settings.source().getFileName()));
      return ShardSet.ofFile(files, name, settings.nested());
    }
    return settings.sourceForm().equals(DIRECTORY)
        ? null
        : ShardSet.ofDirectory(files, settings.sourceForm().equals("tar"), settings.nested());
  }

  /** Different for each source and form: what is kept of one must not be taken for another's. */
  String identity() {
    String path = settings.source().toString();
    return shards == null ? path : path + (settings.nested() ? "//tar+nested" : "//tar");
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
    ShardSet set = shards;
    if (set == null) {
      return files;
    }
    List<Path> indices = new ArrayList<>();
    if (set.isPacked()) {
      indices.add(settings.source().resolve(ShardSet.INDEX.toString()));
    }
    indices.add(state.resolve(INDEX));
    IndexReport report = new IndexReport(settings.source(), notice);
    BackingStore opened =
        ShardSource.open(files, set, indices, settings.metadataThreads(), memory, report);
    unpacked = opened;
    return opened;
  }

  @Override
  public void close() {
    if (unpacked != null) {
      unpacked.close();
    }
    files.close();
  }
}
