package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.machine.Limited;
import io.pmfs.metadata.PathText;
import io.pmfs.pack.GzippedTar;
import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An archive of pieces. Fetches each piece within its time limit and removes secrets; a failed
 * piece becomes a line of {@code problems.txt}. README.txt lists the contents.
 */
public final class Report {
  private static final int MOST_BYTES = 50 << 20;
  private static final int MOST_BYTES_OF_ONE = 4 << 20;
  private static final Duration MOST_TIME = Duration.ofSeconds(90);

  private static final String INTRODUCTION =
      """
      An archive made by `pmfs bugreport`, to attach to a bug report.

      Nothing was sent. Check the archive before you pass it on:
      - It does not contain values under keys that look like a password, secret, token or key,
        values of variables with such names, private keys, or user names and passwords in URLs.
      - Of the environment, it contains only variables of pmfs and a few of the system.
      - It does contain paths, including names of files in log lines, names of hosts and users, and
        addresses.
      - pmfs read no file of a dataset. Of tiers, the archive contains sizes, not names.

      """;

  private final String folder;
  private final Instant time;
  private final Redaction redaction;
  private final List<String> problems = new ArrayList<>();
  private final StringBuilder contents = new StringBuilder();
  private long bytes;

  public Report(String folder, Instant time, Redaction redaction) {
    this.folder = folder;
    this.time = time;
    this.redaction = redaction;
  }

  /** Records what is missing, and why. */
  public void problem(String line) {
    problems.add(PathText.printable(redaction.of(line)));
  }

  public int problems() {
    return problems.size();
  }

  /** Writes the pieces in order; fails only if the archive cannot be written. */
  public void write(OutputStream out, List<Piece> pieces) throws IOException {
    long end = System.nanoTime() + MOST_TIME.toNanos();
    try (GzippedTar archive = new GzippedTar(out, time)) {
      for (Piece piece : pieces) {
        if (System.nanoTime() - end > 0) {
          problem(piece.name() + ": left out: other pieces took " + MOST_TIME.toSeconds() + " s");
          continue;
        }
        byte[] content = content(piece);
        if (content != null) {
          add(archive, piece, content);
        }
      }
      String all = problems.isEmpty() ? "none\n" : String.join("\n", problems) + "\n";
      list("problems.txt", "what is missing, and why");
      archive.add(folder + "/problems.txt", all.getBytes(UTF_8));
      archive.add(folder + "/README.txt", (INTRODUCTION + contents).getBytes(UTF_8));
    }
  }

  private byte @Nullable [] content(Piece piece) {
    try {
      return Limited.call(piece.limit(), piece.content());
    } catch (IOException e) {
      problem(piece.name() + ": " + e.getMessage());
      return null;
    }
  }

  private void add(GzippedTar archive, Piece piece, byte[] content) throws IOException {
    // Redacts before truncating, because half a secret would not be recognized.
    byte[] clean = redaction.of(content);
    if (clean.length > MOST_BYTES_OF_ONE) {
      clean = Arrays.copyOf(clean, MOST_BYTES_OF_ONE);
      problem(piece.name() + ": truncated: it has " + content.length + " bytes");
    }
    if (bytes + clean.length > MOST_BYTES) {
      problem(piece.name() + ": left out: the report has reached its size limit");
      return;
    }
    bytes += clean.length;
    archive.add(folder + "/" + piece.name(), clean);
    list(piece.name(), piece.why());
  }

  private void list(String name, String why) {
    contents.append(String.format("%-44s %s\n", name, why));
  }
}
