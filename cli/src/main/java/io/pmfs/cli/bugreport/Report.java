package io.pmfs.cli.bugreport;

import static java.nio.charset.StandardCharsets.UTF_8;

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
 * One archive of pieces. Each is got within its limit and has its secrets removed; what cannot be
 * got is a line of {@code problems.txt}. README.txt says what is there.
 */
public final class Report {
  private static final int MOST_BYTES = 50 << 20;
  private static final int MOST_BYTES_OF_ONE = 4 << 20;
  private static final Duration MOST_TIME = Duration.ofSeconds(90);

  private static final String INTRODUCTION =
      """
      What `pmfs bugreport` collected for whoever is to find out what is wrong.

      Nobody has been sent anything. Look through it before you pass it on:
      - Removed are values under keys that look like a password, secret, token or key, the values of
        variables of such names wherever they stood, private keys, and names and passwords in URLs.
      - Of the environment only variables of pmfs and a few of the system are there.
      - Not removed are paths, among them names of files in log lines, names of hosts and users,
        and addresses.
      - No file of a dataset was read. Of tiers there are sizes, not names.

      """;

  private final String folder;
  private final Instant time;
  private final Redaction redaction;
  private final List<String> problems = new ArrayList<>();
  private final StringBuilder contents = new StringBuilder();
  private long bytes;

  /** A report whose files lie in one folder. */
  public Report(String folder, Instant time, Redaction redaction) {
    this.folder = folder;
    this.time = time;
    this.redaction = redaction;
  }

  /** Notes what could not be got. */
  public void problem(String line) {
    problems.add(redaction.of(line).replaceAll("\\p{Cntrl}", "?"));
  }

  /** How much could not be got. */
  public int problems() {
    return problems.size();
  }

  /** Gets the pieces in their order; fails only if the archive cannot be written. */
  public void write(OutputStream out, List<Piece> pieces) throws IOException {
    long end = System.nanoTime() + MOST_TIME.toNanos();
    try (GzippedTar archive = new GzippedTar(out, time)) {
      for (Piece piece : pieces) {
        if (System.nanoTime() - end > 0) {
          problem(piece.name() + ": left out: the others took " + MOST_TIME.toSeconds() + " s");
          continue;
        }
        byte[] content = content(piece);
        if (content != null) {
          add(archive, piece, content);
        }
      }
      String all = problems.isEmpty() ? "none\n" : String.join("\n", problems) + "\n";
      list("problems.txt", "what could not be got, and why");
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
    // First this: half of a secret is not known again.
    byte[] clean = redaction.of(content);
    if (clean.length > MOST_BYTES_OF_ONE) {
      clean = Arrays.copyOf(clean, MOST_BYTES_OF_ONE);
      problem(piece.name() + ": cut: it has " + content.length + " bytes");
    }
    if (bytes + clean.length > MOST_BYTES) {
      problem(piece.name() + ": left out: the report is large enough");
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
