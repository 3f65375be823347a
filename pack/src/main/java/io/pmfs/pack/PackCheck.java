package io.pmfs.pack;

import io.pmfs.pack.PackProgress.Phase;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Compares the shards of a pack with their recorded sizes and checksums. */
public final class PackCheck {
  private static final int READ_BYTES = 1 << 20;

  private PackCheck() {}

  /** Reads all shards of a pack, several at once; returns the differences, one line each. */
  public static List<String> of(Path directory, int threads, PackProgress progress)
      throws IOException, PackException, InterruptedException {
    if (!Files.exists(directory.resolve(PackManifest.FILE_NAME))) {
      if (Files.exists(directory.resolve(PackDirectory.MARKER))) {
        return List.of(
            PackDirectory.MARKER + ": not finished; run the pmfs pack that wrote it again");
      }
      throw new PackException(directory + ": not a pack: it has no " + PackManifest.FILE_NAME);
    }
    PackManifest manifest = PackManifest.load(directory);
    progress.enter(Phase.CHECKING, manifest.shards().size(), manifest.size());
    List<String> wrong = Collections.synchronizedList(new ArrayList<>());
    Parallel.forEach(
        manifest.shards(),
        threads,
        () ->
            shard -> {
              String difference = difference(directory.resolve(shard.name()), shard, progress);
              if (difference != null) {
                wrong.add(shard.name() + ": " + difference);
              }
            },
        progress);
    return wrong.stream().sorted().toList();
  }

  /** How a shard differs from what was written; null if it does not. */
  static @Nullable String difference(Path file, PackManifest.Shard expected, PackProgress progress)
      throws IOException {
    long before = 0;
    try (InputStream in = Files.newInputStream(file)) {
      long size = Files.size(file);
      if (size != expected.size()) {
        return "has %d bytes instead of %d".formatted(size, expected.size());
      }
      MessageDigest digest = ShardOutput.sha256();
      byte[] bytes = new byte[READ_BYTES];
      for (int count = in.read(bytes); count > 0; count = in.read(bytes)) {
        progress.checkNotCancelled();
        digest.update(bytes, 0, count);
        progress.did(0, count);
        before += count;
      }
      boolean same =
          before == size && HexFormat.of().formatHex(digest.digest()).equals(expected.sha256());
      return same ? null : "differs from its checksum";
    } catch (NoSuchFileException e) {
      return "is missing";
    } catch (IOException e) {
      return "cannot be read: " + e.getMessage();
    } finally {
      progress.did(1, 0);
    }
  }
}
