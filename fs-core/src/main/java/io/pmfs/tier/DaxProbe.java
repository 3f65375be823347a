package io.pmfs.tier;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import jdk.nio.mapmode.ExtendedMapMode;

/**
 * Tells whether a directory lies on persistent memory that can be mapped directly: the JDK maps
 * with MAP_SYNC (JEP 352), which the kernel refuses on everything else.
 */
final class DaxProbe {
  private static final int PROBE_BYTES = 4096;

  private DaxProbe() {}

  static TierStatus.Dax probe(Path directory) {
    Path file = directory.resolve("dax-probe");
    try {
      String type = Files.getFileStore(directory).type();
      try (FileChannel channel = FileChannel.open(file, Set.of(CREATE, READ, WRITE))) {
        channel.map(ExtendedMapMode.READ_WRITE_SYNC, 0, PROBE_BYTES);
        return new TierStatus.Dax(true, type + " maps persistent memory directly");
      } catch (IOException | UnsupportedOperationException e) {
        return new TierStatus.Dax(
            false, "emulated: " + type + " is not mounted on persistent memory with dax");
      } finally {
        Files.deleteIfExists(file);
      }
    } catch (IOException e) {
      return new TierStatus.Dax(false, "could not be probed: " + e.getMessage());
    }
  }
}
