package io.pmfs.metadata;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Instant;
import org.junit.jupiter.api.Test;

final class InodeTest {
  private static final Instant TIME = Instant.ofEpochSecond(1_000_000, 5);

  private static Attributes file(long size, Instant changed) {
    return new Attributes(0100644, 1, 0, 0, 0, size, 8, TIME, TIME, changed);
  }

  private static Inode inode(FileIdentity identity, Attributes attributes) {
    return new Inode(7, identity, Namespace.ROOT, FileName.of("f"), 1, null, attributes);
  }

  @Test
  void isFile_withAnotherNumber_goesBySizeAndTimesUnlessNumbersAreExact() {
    Attributes known = file(10, TIME);
    Inode ofDirectory = inode(new FileIdentity(0, 1), known);
    Inode ofArchive = inode(new FileIdentity(-2, 1), known);

    assertThat(ofDirectory.isFile(new FileIdentity(0, 2), known)).isTrue();
    assertThat(ofDirectory.isFile(new FileIdentity(0, 2), file(11, TIME))).isFalse();
    assertThat(ofDirectory.isFile(new FileIdentity(0, 2), file(10, TIME.plusNanos(1)))).isFalse();
    assertThat(ofDirectory.isFile(new FileIdentity(0, 1), file(11, TIME))).isTrue();
    assertThat(ofArchive.isFile(new FileIdentity(-2, 2), known)).isFalse();
    assertThat(ofArchive.isFile(new FileIdentity(-2, 1), known)).isTrue();
    assertThat(ofArchive.isRenumbered(new FileIdentity(-2, 2), known)).isFalse();
  }
}
