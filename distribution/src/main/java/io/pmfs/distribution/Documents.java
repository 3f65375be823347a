package io.pmfs.distribution;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.cli.Documentation;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.Map;
import java.util.zip.Deflater;
import java.util.zip.GZIPOutputStream;
import picocli.CommandLine;

/**
 * Writes manual pages, shell completion, the configuration file and Debian's changelog from the
 * commands alone: the same input gives the same bytes.
 */
public final class Documents {
  private static final DateTimeFormatter MAIL_DATE =
      DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss Z", Locale.ROOT);

  /** The offset of the compression level in a gzip header, RFC 1952; Java leaves it at zero. */
  private static final int EXTRA_FLAGS = 8;

  private static final byte SLOWEST = 2;

  private final Path directory;
  private final String version;
  private final Instant time;

  private Documents(Path directory, String version, Instant time) {
    this.directory = directory;
    this.version = version;
    this.time = time;
  }

  /**
   * Takes the directory to write to, the version, its time, the maintainer, the source of the
   * manual page mount.pmfs(8), which belongs to no command, and the page docs/configuration.md.
   */
  public static void main(String[] args) throws Exception {
    Documents documents = new Documents(Path.of(args[0]), args[1], time(args[2]));
    CommandLine commands = Documentation.commands();
    documents.writeManualPages(commands, Path.of(args[4]), Path.of(args[5]));
    documents.write("share/bash-completion/completions/pmfs", Completion.of(commands));
    documents.write("pmfs.toml", Documentation.configuration());
    documents.writeChangelog(args[3]);
  }

  /** Seconds since the epoch or a date: both are usual for project.build.outputTimestamp. */
  private static Instant time(String text) {
    return text.matches("\\d+")
        ? Instant.ofEpochSecond(Long.parseLong(text))
        : DateTimeFormatter.ISO_DATE_TIME.parse(text, Instant::from);
  }

  private void writeManualPages(CommandLine commands, Path helper, Path configuration)
      throws IOException {
    String date = DateTimeFormatter.ISO_LOCAL_DATE.withZone(ZoneOffset.UTC).format(time);
    ManualPages pages =
        new ManualPages(
            commands, Files.readString(helper, UTF_8), Files.readString(configuration, UTF_8));
    for (Map.Entry<String, String> page : pages.write(date, "pmfs " + version).entrySet()) {
      String file = page.getKey();
      writeCompressed(
          "share/man/man" + file.charAt(file.length() - 1) + "/" + file + ".gz", page.getValue());
    }
  }

  /** Debian requires this changelog; changes for users are in CHANGELOG.md. */
  private void writeChangelog(String maintainer) throws IOException {
    writeCompressed(
        "share/doc/pmfs/changelog.gz",
        "pmfs (%s) unstable; urgency=medium\n\n  * Version %s; see CHANGELOG.md.\n\n -- %s  %s\n"
            .formatted(
                version.replace("-", "~").toLowerCase(Locale.ROOT),
                version,
                maintainer,
                MAIL_DATE.format(time.atOffset(ZoneOffset.UTC))));
  }

  private void write(String name, String text) throws IOException {
    Files.writeString(place(name), text, UTF_8);
  }

  /** Compresses like {@code gzip -9n}, as Debian's policy requires. */
  private void writeCompressed(String name, String text) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (OutputStream compressed = new BestGzip(bytes)) {
      compressed.write(text.getBytes(UTF_8));
    }
    byte[] file = bytes.toByteArray();
    file[EXTRA_FLAGS] = SLOWEST;
    Files.write(place(name), file);
  }

  private Path place(String name) throws IOException {
    Path file = directory.resolve(name);
    Files.createDirectories(file.resolveSibling(""));
    return file;
  }

  private static final class BestGzip extends GZIPOutputStream {
    BestGzip(OutputStream out) throws IOException {
      super(out);
      def.setLevel(Deflater.BEST_COMPRESSION);
    }
  }
}
