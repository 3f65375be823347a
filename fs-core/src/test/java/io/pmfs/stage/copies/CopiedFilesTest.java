package io.pmfs.stage.copies;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class CopiedFilesTest {
  private final AtomicLong nanos = new AtomicLong();
  private final CopiedFiles files = new CopiedFiles(nanos::get);

  private void pass(long minutes) {
    nanos.addAndGet(TimeUnit.MINUTES.toNanos(minutes));
  }

  @Test
  void add_again_saysSo() {
    assertThat(files.add(7, false)).isFalse();
    assertThat(files.add(8, true)).isFalse();
    assertThat(files.add(7, true)).isTrue();
    assertThat(files.add(8, false)).isTrue();
  }

  @Test
  void isJustCopied_untilItIsReadToItsEnd() {
    files.add(7, true);

    assertThat(files.isJustCopied(7, false)).isTrue();
    assertThat(files.isJustCopied(7, true)).as("this read is the last of them").isTrue();
    assertThat(files.isJustCopied(7, false)).isFalse();
    assertThat(files.add(7, false)).isTrue();
  }

  @Test
  void isJustCopied_notReadOrNotCopied_isFalse() {
    files.add(7, false);

    assertThat(files.isJustCopied(7, false)).isFalse();
    assertThat(files.isJustCopied(8, false)).isFalse();
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 100, 249, -300})
  void isJustCopied_someMinutesLater_isFalseForGood(long start) {
    pass(start);
    files.add(7, true);
    pass(1);
    assertThat(files.isJustCopied(7, false)).isTrue();
    pass(1);
    assertThat(files.isJustCopied(7, false)).isFalse();
    pass(249);
    assertThat(files.isJustCopied(7, false)).as("minutes are counted round").isFalse();
  }
}
