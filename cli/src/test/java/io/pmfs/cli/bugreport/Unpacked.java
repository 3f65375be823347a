package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.apache.commons.compress.compressors.gzip.GzipCompressorInputStream;

/** A tar.gz in memory. */
public final class Unpacked {
  private Unpacked() {}

  /** Its files by name; each char is a byte. */
  public static Map<String, String> of(byte[] archive) throws IOException {
    Map<String, String> files = new TreeMap<>();
    try (TarArchiveInputStream tar =
        new TarArchiveInputStream(
            new GzipCompressorInputStream(new ByteArrayInputStream(archive)))) {
      for (TarArchiveEntry entry = tar.getNextEntry(); entry != null; entry = tar.getNextEntry()) {
        files.put(entry.getName(), new String(tar.readAllBytes(), ISO_8859_1));
      }
    }
    return files;
  }
}
