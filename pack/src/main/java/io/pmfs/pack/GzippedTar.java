package io.pmfs.pack;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;
import org.apache.commons.compress.compressors.gzip.GzipCompressorOutputStream;

/**
 * Writes a tar.gz of files that are small enough for memory. All of them belong to root, are
 * accessible only to their owner and have the same time. Closing it ends the archive and closes the
 * stream below.
 */
public final class GzippedTar implements AutoCloseable {
  private static final int MODE = 0100600;

  private final TarArchiveOutputStream tar;
  private final FileTime time;

  public GzippedTar(OutputStream out, Instant time) throws IOException {
    this.tar = new TarArchiveOutputStream(new GzipCompressorOutputStream(out), UTF_8.name());
    this.tar.setLongFileMode(TarArchiveOutputStream.LONGFILE_POSIX);
    this.time = FileTime.from(time);
  }

  /** Adds one file; its name includes its directories, with slashes. */
  public void add(String name, byte[] content) throws IOException {
    TarArchiveEntry entry = new TarArchiveEntry(name);
    entry.setSize(content.length);
    entry.setMode(MODE);
    entry.setLastModifiedTime(time);
    tar.putArchiveEntry(entry);
    tar.write(content);
    tar.closeArchiveEntry();
  }

  @Override
  public void close() throws IOException {
    tar.close();
  }
}
