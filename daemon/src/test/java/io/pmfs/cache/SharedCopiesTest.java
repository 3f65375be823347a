package io.pmfs.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Room and shares. All copies have the same size, of which ten fit. */
final class SharedCopiesTest {
  private static final int SIZE = 4096;
  private static final Duration EVICT_AFTER = Duration.ofHours(1);
  private static final int ADA = 1000;
  private static final int BOB = 1001;
  private static final int EVE = 1002;

  @TempDir private Path directory;

  private Instant now = Instant.parse("2026-01-01T00:00:00Z");
  private SharedCopies copies;

  @BeforeEach
  void open() throws IOException {
    copies = new SharedCopies(directory, 10 * SIZE, EVICT_AFTER, false, () -> now);
  }

  @AfterEach
  void close() throws IOException {
    copies.close();
  }

  private static CopyKey key(long inode) {
    return new CopyKey("fs", inode, SIZE, Instant.EPOCH, Instant.EPOCH);
  }

  /** A whole copy that is held; null if there is no room. */
  private @Nullable SharedCopy make(long inode, int user) throws IOException {
    SharedCopy copy = copies.create(key(inode), user);
    if (copy != null) {
      ByteBuffer content = ByteBuffer.allocate(SIZE).putLong(0, inode);
      CRC32C crc = new CRC32C();
      crc.update(content.duplicate());
      try (FileChannel file = copies.write(copy)) {
        file.write(content, 0);
      }
      copies.complete(copy, (int) crc.getValue());
    }
    return copy;
  }

  private boolean fill(long first, int count, int user) throws IOException {
    boolean hasRoom = true;
    for (long inode = first; inode < first + count; inode++) {
      SharedCopy copy = make(inode, user);
      hasRoom &= copy != null;
      if (copy != null) {
        copies.release(copy, user);
      }
    }
    return hasRoom;
  }

  private boolean has(long inode) {
    SharedCopy copy = copies.hold(key(inode), ADA);
    if (copy != null) {
      copies.release(copy, ADA);
    }
    return copy != null;
  }

  private long used(int user) {
    CacheReport.OfUser report = copies.room().users().get(user);
    return report == null ? 0 : report.usedBytes() / SIZE;
  }

  @Test
  void hold_copyThatIsJustBeingMade_hasAFile(@TempDir Path large) throws Exception {
    int count = 1000;
    AtomicLong made = new AtomicLong();
    try (SharedCopies many =
        new SharedCopies(large, (long) count * SIZE, EVICT_AFTER, false, () -> now)) {
      CompletableFuture<Integer> looking =
          CompletableFuture.supplyAsync(
              () -> {
                int without = 0;
                while (made.get() <= count) {
                  SharedCopy copy = many.hold(key(made.get()), BOB);
                  if (copy != null) {
                    without += Files.exists(copy.file) ? 0 : 1;
                    many.release(copy, BOB);
                  }
                }
                return without;
              });
      while (made.incrementAndGet() <= count) {
        assertThat(many.create(key(made.get()), ADA)).isNotNull();
      }
      assertThat(looking.get()).isZero();
    }
  }

  @Test
  void create_othersLeaveTheirShares_mayUseAll() throws IOException {
    assertThat(fill(1, 10, ADA)).isTrue();

    assertThat(used(ADA)).isEqualTo(10);
  }

  @Test
  void create_anotherUserNeedsRoom_takesItFromWhoIsAboveTheShare() throws IOException {
    fill(1, 10, ADA);

    assertThat(fill(100, 10, BOB)).isFalse();

    assertThat(used(ADA)).isEqualTo(5);
    assertThat(used(BOB)).isEqualTo(5);
    // The least recently used ones went.
    assertThat(has(5)).isFalse();
    assertThat(has(6)).isTrue();
  }

  @Test
  void create_severalUsers_takesFromTheFurthestAbove() throws IOException {
    fill(1, 7, ADA);
    fill(100, 3, BOB);

    assertThat(fill(200, 3, EVE)).isTrue();

    assertThat(used(ADA)).isEqualTo(4);
    assertThat(used(BOB)).isEqualTo(3);
  }

  @Test
  void create_ownCopiesInUse_keepsThem_andLaterTakesTheOldest() throws IOException {
    fill(1, 10, ADA);
    assertThat(make(11, ADA)).isNull();

    now = now.plus(EVICT_AFTER).plusSeconds(1);
    assertThat(has(1)).isTrue();
    assertThat(fill(11, 1, ADA)).isTrue();

    assertThat(has(1)).isTrue();
    assertThat(has(2)).isFalse();
    assertThat(copies.room().evicted()).isEqualTo(1);
  }

  @Test
  void create_allIsOpen_hasNoRoom_untilItIsClosed() throws IOException {
    SharedCopy first = Objects.requireNonNull(make(1, ADA));
    for (int i = 2; i <= 10; i++) {
      make(i, ADA);
    }
    now = now.plus(EVICT_AFTER).plusSeconds(1);
    assertThat(make(11, BOB)).isNull();
    assertThat(copies.heldBytes(ADA)).isEqualTo(10 * SIZE);

    copies.release(first, ADA);

    assertThat(make(11, BOB)).isNotNull();
    assertThat(has(1)).isFalse();
  }

  @Test
  void fail_whileOthersHoldIt_countsUntilTheyRelease() throws IOException {
    SharedCopy copy = Objects.requireNonNull(copies.create(key(1), ADA));
    SharedCopy same = Objects.requireNonNull(copies.hold(key(1), BOB));
    copies.fail(copy);
    copies.release(copy, ADA);

    assertThat(copies.room().usedBytes()).isEqualTo(SIZE);
    assertThat(copies.hold(key(1), ADA)).isNull();
    copies.release(same, BOB);
    assertThat(copies.room().usedBytes()).isZero();
  }

  @Test
  void open_again_hasTheSameCopiesAndShares_andLessRoomEvictsTheOldest() throws IOException {
    fill(1, 3, ADA);
    now = now.plusSeconds(3600);
    fill(4, 3, BOB);
    Files.setLastModifiedTime(
        directory.resolve("copies").resolve(key(2).path(ADA, checksum(2))),
        java.nio.file.attribute.FileTime.from(Instant.EPOCH));
    copies.close();
    copies = new SharedCopies(directory, 5 * SIZE, EVICT_AFTER, false, () -> now);

    assertThat(used(ADA)).isEqualTo(2);
    assertThat(used(BOB)).isEqualTo(3);
    assertThat(has(2)).isFalse();
  }

  private static int checksum(long inode) {
    CRC32C crc = new CRC32C();
    crc.update(ByteBuffer.allocate(SIZE).putLong(0, inode));
    return (int) crc.getValue();
  }

  @Test
  void open_foreignFiles_areRemoved() throws IOException {
    Path foreign = directory.resolve("copies/fs/01/1-2-3");
    Files.createDirectories(foreign.getParent());
    Files.writeString(foreign, "foreign");
    fill(1, 1, ADA);
    Path whole = directory.resolve("copies").resolve(key(1).path(ADA, checksum(1)));
    Files.writeString(whole, "short");
    copies.close();
    open();

    assertThat(foreign).doesNotExist();
    assertThat(whole).doesNotExist();
    assertThat(copies.room().usedBytes()).isZero();
  }

  @Test
  void open_directoryInUse_isRefused() {
    assertThatThrownBy(() -> new SharedCopies(directory, SIZE, EVICT_AFTER, false, () -> now))
        .hasMessageContaining("in use by another cache");
  }
}
