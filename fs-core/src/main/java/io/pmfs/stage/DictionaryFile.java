package io.pmfs.stage;

import io.pmfs.compression.Dictionary;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A tier's dictionary as a file that {@code zstd -D} takes. Its name has its CRC32C, so a damaged
 * one is seen: then it is as if it were not there, and so are the copies that need it.
 */
final class DictionaryFile {
  private static final Logger log = LoggerFactory.getLogger(DictionaryFile.class);
  private static final String PREFIX = "dictionary-";
  private static final long LARGEST_BYTES = 16 << 20;

  private DictionaryFile() {}

  static @Nullable Dictionary load(Path directory) {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, PREFIX + "*")) {
      for (Path file : files) {
        Dictionary dictionary = read(file);
        if (dictionary != null) {
          return dictionary;
        }
        log.warn("{} is damaged: copies that need it are made again", file);
        Files.delete(file);
      }
    } catch (IOException e) {
      log.warn("no dictionary in {}: {}", directory, e.getMessage());
    }
    return null;
  }

  private static @Nullable Dictionary read(Path file) throws IOException {
    if (Files.size(file) > LARGEST_BYTES) {
      return null;
    }
    byte[] bytes = Files.readAllBytes(file);
    return file.endsWith(name(bytes)) ? Dictionary.of(bytes) : null;
  }

  static boolean isThere(Path directory, Dictionary dictionary) {
    return Files.exists(directory.resolve(name(dictionary.bytes())));
  }

  /** Says whether it is there now. */
  static boolean save(Path directory, Dictionary dictionary) {
    byte[] bytes = dictionary.bytes();
    try {
      Path unfinished =
          Files.createTempFile(
              directory,
              "unfinished",
              null,
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
      Files.write(unfinished, bytes);
      Files.move(unfinished, directory.resolve(name(bytes)), StandardCopyOption.ATOMIC_MOVE);
      return true;
    } catch (IOException e) {
      log.warn("no dictionary is kept in {}: {}", directory, e.getMessage());
      return false;
    }
  }

  private static String name(byte[] bytes) {
    return "%s%08x".formatted(PREFIX, Blocks.checksum(ByteBuffer.wrap(bytes)));
  }
}
