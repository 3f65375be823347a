package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.FakeStore;
import io.pmfs.source.FaultyStore;
import io.pmfs.source.FaultyStore.Answer;
import java.time.Instant;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

final class OwnViewTest {
  private static final FileName FILE = FileName.of("f");

  private final FakeStore files = new FakeStore();
  private final FaultyStore source = new FaultyStore(files);
  private final OwnView view = new OwnView(source);
  private SourceVersion now = new SourceVersion(0, Instant.EPOCH);

  @BeforeEach
  void makeFile() {
    files.file(FILE, 1, 100);
    now = files.expectedStatus(FILE).attributes().version();
  }

  @AfterEach
  void close() {
    view.close();
  }

  @Test
  void of_sizeAndTimeDecide() {
    assertThat(view.of(FILE, now)).isEqualTo(OwnView.Answer.SAME);
    assertThat(view.of(FILE, new SourceVersion(99, now.modificationTime())))
        .isEqualTo(OwnView.Answer.OTHER);
    assertThat(view.of(FILE, new SourceVersion(100, now.modificationTime().plusNanos(1))))
        .isEqualTo(OwnView.Answer.OTHER);
    assertThat(view.of(FileName.of("none"), now)).isEqualTo(OwnView.Answer.NONE);
  }

  @Test
  void of_afterAnyFailure_waitsForTheSourceAsBefore() {
    source.faults(
        (operation, path, offset) -> {
          throw new StackOverflowError("injected");
        });
    assertThat(view.of(FILE, now)).isEqualTo(OwnView.Answer.NONE);
    source.faults(
        (operation, path, offset) -> {
          throw new FsException(Errno.EIO, "injected");
        });
    assertThat(view.of(FILE, now)).isEqualTo(OwnView.Answer.NONE);
    source.faults(
        (operation, path, offset) -> {
          try {
            Thread.sleep(300); // longer than while another answer is overdue
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
          return Answer.WHOLE;
        });
    assertThat(view.of(FILE, now)).isEqualTo(OwnView.Answer.SAME);
  }
}
