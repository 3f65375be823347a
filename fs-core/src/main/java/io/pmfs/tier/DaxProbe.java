package io.pmfs.tier;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import io.pmfs.posix.MountedFileSystem;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import jdk.nio.mapmode.ExtendedMapMode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Determines whether a directory is on persistent memory that can be mapped directly: the JDK maps
 * a temporary file with MAP_SYNC (JEP 352), which the kernel refuses on other storage.
 */
final class DaxProbe {
  private static final Logger log = LoggerFactory.getLogger(DaxProbe.class);

  private static final int PROBE_BYTES = 4096;

  private DaxProbe() {}

  /**
   * Probes a directory.
   *
   * @param root the directory that contains proc and sys: {@code /} except in tests
   */
  static DaxEvidence probe(Path directory, DaxFiles files, Path root) throws IOException {
    Path file = directory.resolve("dax-probe");
    try (FileChannel channel =
        FileChannel.open(file, Set.of(CREATE, READ, WRITE), DirectoryTier.FILE_MODE)) {
      return new DaxEvidence(
          isMappedSync(channel), files.isDirect(channel), MountedFileSystem.of(directory, root));
    } finally {
      Files.deleteIfExists(file);
    }
  }

  private static boolean isMappedSync(FileChannel channel) {
    try {
      channel.map(ExtendedMapMode.READ_WRITE_SYNC, 0, PROBE_BYTES);
      return true;
    } catch (IOException | UnsupportedOperationException e) {
      log.debug("MAP_SYNC: {}", e.toString());
      return false;
    }
  }
}
