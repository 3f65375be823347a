package io.pmfs.pack;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.JsonParseException;
import io.pmfs.shards.ShardSet;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The directory to which a pack is written. During the pack it contains a marker, which describes
 * the pack and lists the finished shards, one per line; afterwards it contains the manifest. Held
 * by one process at a time.
 */
final class PackDirectory implements AutoCloseable {
  /** The marker of an unfinished pack; a directory with a marker is not a dataset. */
  static final String MARKER = ShardSet.UNFINISHED.toString();

  /** Written beside the shards when all shards are finished. */
  static final String INDEX = ShardSet.INDEX.toString();

  private static final String TEMPORARY = ".tmp";
  private static final Pattern SHARD =
      Pattern.compile("shard-\\d{" + PlannedShard.DIGITS + ",}\\.tar(\\.zst)?(\\.tmp)?");

  /** The first line of the marker: a pack with the same header may continue with these shards. */
  private record Header(
      int version, String source, String sort, String compression, long shardSize) {}

  /**
   * A further line: one finished shard.
   *
   * @param plan the planned content, {@link PlannedShard#hash}
   * @param bytes of content
   */
  record Finished(
      PackManifest.Shard shard,
      String plan,
      PackManifest.Counts counts,
      long bytes,
      List<Unreadable> leftOut) {}

  private final Path directory;
  private final FileChannel marker;
  private final Map<String, Finished> finished = new HashMap<>();

  private PackDirectory(Path directory, FileChannel marker) {
    this.directory = directory;
    this.marker = marker;
  }

  /**
   * Creates the directory, or continues an interrupted pack of the same source and options in it.
   *
   * @throws PackException if it contains anything else
   */
  static PackDirectory open(PackSettings settings) throws IOException, PackException {
    Path directory = settings.directory();
    check(directory);
    Files.createDirectories(directory);
    FileChannel marker =
        FileChannel.open(
            directory.resolve(MARKER),
            StandardOpenOption.CREATE,
            StandardOpenOption.READ,
            StandardOpenOption.WRITE);
    PackDirectory opened = new PackDirectory(directory, marker);
    try {
      opened.lock();
      check(directory); // the pack that had the lock may have ended
      opened.loadFinished(PackManifest.JSON.toJson(headerOf(settings)));
    } catch (IOException | PackException e) {
      marker.close();
      throw e;
    }
    return opened;
  }

  private static Header headerOf(PackSettings settings) {
    return new Header(
        PackManifest.VERSION,
        settings.source(),
        settings.order().toString(),
        settings.compression().toString(),
        settings.shardBytes());
  }

  /** Throws unless the directory is absent, empty or an unfinished pack. */
  static void check(Path directory) throws IOException, PackException {
    if (!Files.exists(directory)) {
      return;
    }
    if (!Files.isDirectory(directory)) {
      throw new PackException(directory + ": not a directory; name one that is empty or absent");
    }
    if (Files.exists(directory.resolve(PackManifest.FILE_NAME))) {
      Files.deleteIfExists(directory.resolve(MARKER)); // the run ended between the two
      throw new PackException(
          directory
              + ": contains a finished pack; check it with --check, or name another"
              + " directory");
    }
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(directory)) {
      for (Path entry : entries) {
        if (!isOurs(entry)) {
          throw new PackException(
              "%s: not empty: contains %s; name a directory that is empty or absent"
                  .formatted(directory, entry.getFileName()));
        }
      }
    }
    if (!Files.exists(directory.resolve(MARKER)) && holdsShards(directory)) {
      throw new PackException(
          directory + ": contains shards of an unknown pack; name another directory");
    }
  }

  private static boolean isOurs(Path entry) {
    String name = entry.getFileName().toString();
    return name.startsWith(MARKER)
        || name.startsWith(PackManifest.FILE_NAME)
        || name.startsWith(INDEX)
        || isShard(entry);
  }

  private static boolean isShard(Path entry) {
    return SHARD.matcher(entry.getFileName().toString()).matches();
  }

  private static boolean holdsShards(Path directory) throws IOException {
    try (DirectoryStream<Path> shards =
        Files.newDirectoryStream(directory, PackDirectory::isShard)) {
      return shards.iterator().hasNext();
    }
  }

  private void lock() throws PackException {
    try {
      if (marker.tryLock() != null) {
        return;
      }
    } catch (OverlappingFileLockException e) {
      // This process holds the lock.
    } catch (IOException e) {
      return; // some parallel file systems have no locks
    }
    throw new PackException(directory + ": another pmfs pack is writing it; wait until it ends");
  }

  private void loadFinished(String header) throws IOException, PackException {
    ByteBuffer bytes = ByteBuffer.allocate(Math.toIntExact(marker.size()));
    while (bytes.hasRemaining() && marker.read(bytes) >= 0) {}
    String text = new String(bytes.array(), UTF_8);
    String[] lines = text.split("\n", -1);
    if (lines.length == 1) { // new, or a crash cut the header short
      marker.truncate(0).position(0);
      append(header);
      sync(directory);
      return;
    }
    if (!lines[0].equals(header)) {
      throw new PackException(
          "%s: contains an unfinished pack of another source or with other options (%s); remove"
                  .formatted(directory, lines[0])
              + " it or name another directory");
    }
    long whole = 0;
    for (int i = 0; i < lines.length - 1; i++) {
      whole += lines[i].getBytes(UTF_8).length + 1L;
      Finished one = i == 0 ? null : parse(lines[i]);
      if (one != null) {
        finished.put(one.shard().name(), one);
      }
    }
    // Overwrites a line that a crash cut short.
    marker.truncate(whole).position(whole);
  }

  private static @Nullable Finished parse(String line) {
    try {
      Finished one = PackManifest.JSON.fromJson(line, Finished.class);
      return one == null || one.shard() == null || one.shard().name() == null ? null : one;
    } catch (JsonParseException e) {
      return null;
    }
  }

  /** The marker's entry for a shard; null if the shard was not finished. */
  @Nullable Finished finished(String name) {
    return finished.get(name);
  }

  Path file(String name) {
    return directory.resolve(name);
  }

  /** The path of a shard or of the manifest while it is being written. */
  Path temporary(String name) {
    return directory.resolve(name + TEMPORARY);
  }

  /** Removes all shards except those with the given names. */
  void removeShardsBut(Set<String> names) throws IOException {
    try (DirectoryStream<Path> shards =
        Files.newDirectoryStream(directory, PackDirectory::isShard)) {
      for (Path shard : shards) {
        if (!names.contains(shard.getFileName().toString())) {
          Files.delete(shard);
        }
      }
    }
  }

  /** Moves a shard that is complete and synced to its final name and records it in the marker. */
  void finish(Finished one) throws IOException {
    String name = one.shard().name();
    Files.move(temporary(name), file(name), StandardCopyOption.ATOMIC_MOVE);
    sync(directory);
    synchronized (marker) {
      append(PackManifest.JSON.toJson(one));
      finished.put(name, one);
    }
  }

  private void append(String line) throws IOException {
    ByteBuffer rest = ByteBuffer.wrap((line + "\n").getBytes(UTF_8));
    while (rest.hasRemaining()) {
      marker.write(rest);
    }
    marker.force(false);
  }

  /** Writes the manifest, which makes the pack complete. */
  void complete(PackManifest manifest) throws IOException {
    replace(file(PackManifest.FILE_NAME), manifest.toJson());
    Files.deleteIfExists(file(MARKER));
    sync(directory);
  }

  private static void replace(Path file, String text) throws IOException {
    Path directory = file.resolveSibling("");
    Path temporary = file.resolveSibling(file.getFileName() + TEMPORARY);
    Files.writeString(temporary, text, UTF_8);
    sync(temporary);
    Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE);
    sync(directory);
  }

  private static void sync(Path path) throws IOException {
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
      channel.force(true);
    }
  }

  @Override
  public void close() throws IOException {
    marker.close();
  }
}
