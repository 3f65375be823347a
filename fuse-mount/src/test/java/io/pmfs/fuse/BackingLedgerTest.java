package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class BackingLedgerTest {
  private static final int MANY = BackingLedger.PIECE_SLOTS + 3616; // 20,000

  @TempDir private Path directory;

  private BackingLedger open() throws Exception {
    return new BackingLedger(directory.resolve("ledger"));
  }

  @Test
  void entries_ofMoreThanOnePiece_areKnownToTheNextProcess() throws Exception {
    BackingLedger first = open();
    for (int i = 0; i < MANY; i++) {
      assertThat(first.put(1000L + i, 255, 1 + i)).isEqualTo(i);
    }
    first.setOpens(MANY - 1, 7);
    first.remove(BackingLedger.PIECE_SLOTS);

    BackingLedger second = open();

    assertThat(second.entries()).hasSize(MANY - 1);
    assertThat(second.entries().get(MANY - 2))
        .isEqualTo(new BackingLedger.Entry(MANY - 1, 1000L + MANY - 1, 255, MANY, 7));
    assertThat(second.put(5, 0, 5)).as("the free one").isEqualTo(BackingLedger.PIECE_SLOTS);
  }

  @Test
  void put_noRoomForMore_isRefused() throws Exception {
    BackingLedger ledger = open();
    for (int i = 0; i < BackingLedger.PIECE_SLOTS; i++) {
      ledger.put(1000L + i, 255, 1 + i);
    }
    ledger.close();

    assertThat(ledger.put(1, 0, 1)).isEqualTo(-1);
    assertThat(open().entries()).hasSize(BackingLedger.PIECE_SLOTS);
  }
}
