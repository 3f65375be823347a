package io.pmfs.stage.formats;

import io.pmfs.compression.Dictionary;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A tier's dictionary as a file that {@code zstd -D} accepts. Its name contains its CRC32C, so
 * damage is detected: a damaged dictionary, and the copies that need it, are treated as missing.
 */
public final class DictionaryFile {
  private static final Logger log = LoggerFactory.getLogger(DictionaryFile.class);
  private static final String PREFIX = "dictionary-";
  private static final long LARGEST_BYTES = 16 << 20;

  private DictionaryFile() {}

  static @Nullable Dictionary load(Path directory) {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, PREFIX + "*")) {
      for (Path file : files) {
        Dictionary dictionary = loadFile(file);
        if (dictionary != null) {
          return dictionary;
        }
        log.warn("{} is damaged: copies that need it will be made again", file);
        Files.delete(file);
      }
    } catch (IOException e) {
      log.warn("cannot read a dictionary in {}: {}", directory, e.getMessage());
    }
    return null;
  }

  /** The undamaged dictionary in a directory that another process may be using; null if none. */
  static @Nullable Dictionary find(Path directory) {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, PREFIX + "*")) {
      for (Path file : files) {
        Dictionary dictionary = loadFile(file);
        if (dictionary != null) {
          return dictionary;
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      log.debug("cannot read a dictionary in {}: {}", directory, e.getMessage());
    }
    return null;
  }

  private static @Nullable Dictionary loadFile(Path file) throws IOException {
    if (Files.size(file) > LARGEST_BYTES) {
      return null;
    }
    byte[] bytes = Files.readAllBytes(file);
    return file.endsWith(name(bytes)) ? Dictionary.of(bytes) : null;
  }

  static boolean isThere(Path directory, Dictionary dictionary) {
    return Files.exists(directory.resolve(name(dictionary.bytes())));
  }

  /** Saves a dictionary; false if that failed. */
  public static boolean save(Path directory, Dictionary dictionary) {
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
      log.warn("cannot save the dictionary in {}: {}", directory, e.getMessage());
      return false;
    }
  }

  private static String name(byte[] bytes) {
    return "%s%08x".formatted(PREFIX, Blocks.checksum(ByteBuffer.wrap(bytes)));
  }
}
