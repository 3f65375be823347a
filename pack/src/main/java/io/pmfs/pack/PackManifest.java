package io.pmfs.pack;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonParseException;
import io.pmfs.shards.ShardSet;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The description of a finished pack in {@code pmfs-pack.json}; see docs/formats.md. A directory
 * with this file is complete.
 */
public record PackManifest(
    int version,
    String pmfs,
    String source,
    String sort,
    String compression,
    long shardSize,
    Counts counts,
    long bytes,
    List<Unreadable> leftOut,
    List<Shard> shards) {
  static final String FILE_NAME = ShardSet.MANIFEST.toString();
  static final int VERSION = 1;

  static final Gson JSON = new GsonBuilder().disableHtmlEscaping().create();
  private static final Gson PRETTY =
      new GsonBuilder().disableHtmlEscaping().setPrettyPrinting().create();

  /**
   * How many files were packed, by type.
   *
   * @param hardLinks second and further names
   * @param others FIFOs and device files
   */
  public record Counts(
      long files, long directories, long symbolicLinks, long hardLinks, long others) {
    static final Counts NONE = new Counts(0, 0, 0, 0, 0);

    Counts plus(Counts more) {
      return new Counts(
          files + more.files,
          directories + more.directories,
          symbolicLinks + more.symbolicLinks,
          hardLinks + more.hardLinks,
          others + more.others);
    }

    Counts withDirectories(long count) {
      return new Counts(files, count, symbolicLinks, hardLinks, others);
    }

    /** The total of all types. */
    public long total() {
      return files + directories + symbolicLinks + hardLinks + others;
    }
  }

  /**
   * One shard.
   *
   * @param size bytes of the file
   * @param tarSize bytes of the tar file in it; equals {@code size} without compression
   * @param members number of members; directories count in each shard that has them
   */
  public record Shard(String name, long size, long tarSize, long members, String sha256) {}

  public static PackManifest load(Path directory) throws IOException, PackException {
    Path file = directory.resolve(FILE_NAME);
    try {
      PackManifest manifest = JSON.fromJson(Files.readString(file, UTF_8), PackManifest.class);
      if (manifest == null || manifest.version != VERSION || manifest.shards == null) {
        throw new PackException(file + ": not a manifest of this version; use a newer pmfs");
      }
      return manifest;
    } catch (JsonParseException e) {
      throw new PackException(file + ": damaged; pack the source again", e);
    }
  }

  String toJson() {
    return PRETTY.toJson(this) + "\n";
  }

  public long size() {
    return shards.stream().mapToLong(Shard::size).sum();
  }

  /** The total size of the tar files in all shards. */
  public long tarSize() {
    return shards.stream().mapToLong(Shard::tarSize).sum();
  }
}
