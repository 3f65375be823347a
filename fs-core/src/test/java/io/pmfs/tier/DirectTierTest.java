package io.pmfs.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.memory.ReadResult;
import io.pmfs.source.FakeStore;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A tier that treats its files as mapped memory. */
final class DirectTierTest extends TierContract {
  private static final int LARGE = (2 << 20) + 1;

  @TempDir private Path directory;
  private final FakeDaxFiles dax = new FakeDaxFiles();

  @Override
  protected DirectoryTier newTier(long capacityBytes) throws IOException {
    return new DirectoryTier(settings(capacityBytes), DirectoryTier.Usage.NONE, dax);
  }

  private TierSettings settings(long capacityBytes) {
    return new TierSettings("pm:test", "pm", directory, capacityBytes, 0);
  }

  @Test
  void isDirect_pmTierOfSuchFiles_isTrueThoughNotReal() throws Exception {
    try (DirectoryTier tier = newTier(16 << 20)) {
      assertThat(tier.isDirect()).isTrue();
      assertThat(Objects.requireNonNull(tier.status().dax()).real()).isFalse();
      assertThat(tier.status().dax().reason()).startsWith("DAX, but without MAP_SYNC");
    }
  }

  @Test
  void isDirect_meantToBeADisk_isFalse() throws Exception {
    try (DirectoryTier tier =
        new DirectoryTier(settings(16 << 20), DirectoryTier.Usage.NONE, null)) {
      assertThat(tier.isDirect()).isFalse();
      assertThat(tier.status().dax()).isNull();
      put(tier, 7, content(1, LARGE));
      try (CopyReader reader = Objects.requireNonNull(tier.open(7, null))) {
        assertThat(reader.read(0, 10)).isInstanceOf(ReadResult.FileRange.class);
      }
    }
  }

  @Test
  void read_largeCopy_isARangeOfItsMapping() throws Exception {
    try (DirectoryTier tier = newTier(16 << 20)) {
      put(tier, 7, content(1, LARGE));
      try (CopyReader reader = Objects.requireNonNull(tier.open(7, null))) {
        assertThat(dax.mapped).hasValue(0);
        ReadResult result = reader.read(LARGE - 5000, 5000);
        reader.read(0, 1);

        ByteBuffer memory = ((ReadResult.Mapping) result).memory();
        assertThat(memory).isEqualTo(ByteBuffer.wrap(FakeStore.content(1, LARGE - 5000, 5000)));
        assertThat(dax.mapped).hasValue(1);
      }
      assertThat(dax.mapped).as("unmapped with the last reader").hasValue(0);
    }
  }

  @Test
  void read_smallCopyOrUnmappable_isARangeOfItsFile() throws Exception {
    try (DirectoryTier tier = newTier(16 << 20)) {
      put(tier, 7, content(1, LARGE - 2));
      put(tier, 8, content(2, LARGE));
      dax.mappable = false;
      for (long number : new long[] {7, 8}) {
        try (CopyReader reader = Objects.requireNonNull(tier.open(number, null))) {
          assertThat(reader.read(0, 10)).isInstanceOf(ReadResult.FileRange.class);
        }
      }
      assertThat(get(tier, 8)).isEqualTo(content(2, LARGE));
    }
  }

  @Test
  void copyTo_mappedCopyThatWasCutShort_failsAsAReadDoes() throws Exception {
    try (DirectoryTier tier = newTier(16 << 20)) {
      put(tier, 7, content(1, LARGE));
      try (CopyReader reader = Objects.requireNonNull(tier.open(7, null))) {
        ReadResult result = reader.read(LARGE - 10, 10);
        Path file = Objects.requireNonNull(tier.file(7));
        try (var channel = Files.newByteChannel(file, StandardOpenOption.WRITE)) {
          channel.truncate(10);
        }

        assertThatThrownBy(() -> result.copyTo(ByteBuffer.allocate(10)))
            .isInstanceOf(EOFException.class);
      }
    }
  }

  @Test
  void allocate_largeCopy_hasItsRoomAtOnce() throws Exception {
    try (DirectoryTier tier = newTier(16 << 20)) {
      CopyWriter large = create(tier, 7, LARGE);
      large.allocate(LARGE);
      CopyWriter small = create(tier, 8, 1000);
      small.allocate(1000);

      assertThat(dax.allocated).containsExactly((long) LARGE);
      large.close();
      small.close();
    }
  }

  @Test
  void allocate_withoutRoom_turnsTheTierFull() throws Exception {
    try (DirectoryTier tier = newTier(16 << 20)) {
      dax.full = new IOException("No space left on device");
      CopyWriter large = create(tier, 7, LARGE);

      assertThatThrownBy(() -> large.allocate(LARGE)).isSameAs(dax.full);
      large.close();
      assertThat(tier.status().state()).isEqualTo(TierStatus.State.FULL);
      assertThat(tier.status().usedBytes()).isZero();
    }
  }
}
