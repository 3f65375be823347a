package io.pmfs.cli.bugreport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class ReportTest {
  private static final Instant TIME = Instant.parse("2026-11-22T00:00:00Z");

  private final Redaction redaction = new Redaction();
  private final Report report = new Report("top", TIME, redaction);

  private Map<String, String> write(Piece... pieces) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    report.write(out, List.of(pieces));
    return Unpacked.of(out.toByteArray());
  }

  private static Piece piece(String name, Callable<String> text) {
    return Piece.text(name, "for a test", Duration.ofSeconds(20), text);
  }

  @Test
  void write_pieces_listsThemAndSaysWhatIsTrue() throws IOException {
    Map<String, String> files = write(piece("a/b.txt", () -> "content\n"));

    assertThat(files)
        .containsOnlyKeys("top/a/b.txt", "top/problems.txt", "top/README.txt")
        .containsEntry("top/a/b.txt", "content\n")
        .containsEntry("top/problems.txt", "none\n");
    assertThat(files.get("top/README.txt"))
        .contains("Nothing was sent")
        .containsPattern("(?m)^a/b\\.txt +for a test$")
        .containsPattern("(?m)^problems\\.txt ");
  }

  @Test
  void write_pieceFails_isAProblemAndTheOthersAreThere() throws IOException {
    Map<String, String> files =
        write(
            piece(
                "bad.txt",
                () -> {
                  throw new IOException("password: hunter2 at\nhome");
                }),
            piece(
                "bug.txt",
                () -> {
                  throw new IllegalStateException("a bug");
                }),
            new Piece("absent.txt", "", Piece.SHORT, () -> null),
            piece("good.txt", () -> "x"));

    assertThat(files).doesNotContainKeys("top/bad.txt", "top/bug.txt", "top/absent.txt");
    assertThat(files.get("top/good.txt")).isEqualTo("x");
    assertThat(files.get("top/problems.txt"))
        .contains("bad.txt: password: [removed]", "bug.txt: ", "a bug")
        .doesNotContain("hunter2", "absent")
        .hasLineCount(2);
    assertThat(report.problems()).isEqualTo(2);
  }

  @Test
  void write_pieceHangs_isLeftBehind() throws IOException {
    CountDownLatch never = new CountDownLatch(1);
    Piece hangs =
        Piece.text(
            "hung.txt",
            "",
            Duration.ofMillis(50),
            () -> {
              boolean interrupted = false;
              while (!interrupted) {
                try {
                  never.await();
                } catch (InterruptedException e) {
                  interrupted = true;
                }
              }
              return "too late";
            });

    Map<String, String> files = write(hangs, piece("next.txt", () -> "x"));

    assertThat(files).containsKey("top/next.txt").doesNotContainKey("top/hung.txt");
    assertThat(files.get("top/problems.txt")).contains("hung.txt: not done within");
  }

  @Test
  void write_moreThanFits_isCutOrLeftOut() throws IOException {
    String large = "x".repeat(5 << 20);
    Piece[] pieces =
        IntStream.range(0, 14).mapToObj(i -> piece("p" + i, () -> large)).toArray(Piece[]::new);

    Map<String, String> files = write(pieces);

    assertThat(files.get("top/p0")).hasSize(4 << 20);
    assertThat(files.values().stream().mapToLong(String::length).sum()).isLessThan(51 << 20);
    assertThat(files.get("top/problems.txt"))
        .contains("p0: truncated: it has " + (5 << 20) + " bytes", "p13: left out");
  }

  @Test
  void write_secretWherePiecesAreCut_isRemovedWhole() throws IOException {
    redaction.learn(Map.of("A_SECRET", "hunter2-hunter2"));
    String text = "x".repeat((4 << 20) - 5) + "hunter2-hunter2";

    assertThat(write(piece("p", () -> text)).get("top/p")).doesNotContain("hunt");
  }

  @Test
  void write_diskFull_fails() {
    OutputStream full =
        new OutputStream() {
          @Override
          public void write(int b) throws IOException {
            throw new IOException("No space left on device");
          }
        };
    byte[] noise = new byte[1 << 20];
    new Random(1).nextBytes(noise);
    Piece piece = new Piece("noise", "", Piece.SHORT, () -> noise);

    assertThatThrownBy(() -> report.write(full, List.of(piece)))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("No space left");
  }
}
