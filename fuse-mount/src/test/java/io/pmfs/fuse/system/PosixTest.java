package io.pmfs.fuse.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.concurrent.atomic.AtomicInteger;
import jnr.ffi.LastError;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class PosixTest {
  @TempDir private Path directory;

  /** Each field has a unique value at its offset in linux/stat.h. */
  @Test
  void attributes_everyField_isAtItsOffset() {
    Pointer statx = Memory.allocateDirect(Posix.RUNTIME, Posix.STATX_SIZE);
    statx.putInt(16, 3);
    statx.putInt(20, 0xfffffffe);
    statx.putInt(24, 5);
    statx.putShort(28, (short) 0x81a4);
    statx.putLongLong(32, 7);
    statx.putLongLong(40, 1L << 40);
    statx.putLongLong(48, 9);
    statx.putLongLong(64, 10);
    statx.putInt(72, 11);
    statx.putLongLong(96, -12);
    statx.putInt(104, 999_999_999);
    statx.putLongLong(112, 14);
    statx.putInt(120, 15);
    statx.putInt(128, 259);
    statx.putInt(132, 70_000);
    statx.putInt(136, 8);
    statx.putInt(140, 2);

    assertThat(Posix.attributes(statx))
        .isEqualTo(
            new Attributes(
                0x81a4,
                3,
                -2,
                5,
                (259L << 8) | (70_000 & 0xff) | (70_000L & 0xffffff00L) << 12,
                1L << 40,
                9,
                Instant.ofEpochSecond(10, 11),
                Instant.ofEpochSecond(14, 15),
                Instant.ofEpochSecond(-12, 999_999_999)));
    assertThat(Posix.inode(statx)).isEqualTo(7);
    assertThat(Posix.device(statx)).isEqualTo((8 << 8) | 2);
  }

  @Test
  void attributes_realFile_areWhatStatPrints() throws Exception {
    Files.write(directory.resolve("f"), new byte[12_345]);
    Shell.run(directory, "touch -a -d '2001-02-03 04:05:06.7 UTC' f; ln f g");
    String[] expected =
        Shell.run(directory, "stat -c '%f %h %u %g %s %b %.9X %.9Y %.9Z %i' f").split(" ", -1);
    try (DirectoryStore store = new DirectoryStore(directory)) {
      var status = store.status(FileName.of("f"));
      Attributes attributes = status.attributes();

      assertThat(Integer.toHexString(attributes.mode())).isEqualTo(expected[0]);
      assertThat(attributes.linkCount()).hasToString(expected[1]);
      assertThat(attributes.uid()).hasToString(expected[2]);
      assertThat(attributes.gid()).hasToString(expected[3]);
      assertThat(attributes.size()).hasToString(expected[4]);
      assertThat(attributes.blocks()).hasToString(expected[5]);
      assertThat(seconds(attributes.accessTime())).isEqualTo(expected[6]);
      assertThat(seconds(attributes.modificationTime())).isEqualTo(expected[7]);
      assertThat(seconds(attributes.changeTime())).isEqualTo(expected[8]);
      assertThat(status.identity().inode()).hasToString(expected[9]);
    }
  }

  private static String seconds(Instant time) {
    return "%d.%09d".formatted(time.getEpochSecond(), time.getNano());
  }

  @Test
  void terminated_bytes_endWithNul() {
    assertThat(Posix.terminated(FileName.of(""))).containsExactly(0);
    assertThat(Posix.terminated(FileName.of(new byte[] {(byte) 0xff, 'a'})))
        .containsExactly(0xff, 'a', 0);
    assertThat(Posix.terminated("ä")).containsExactly(0xc3, 0xa4, 0);
  }

  /** Calls that fail with these errors in order; 0 for one that succeeds. */
  private static Posix.SystemCall calls(int... errors) {
    AtomicInteger next = new AtomicInteger();
    return () -> {
      int error = errors[next.getAndIncrement()];
      LastError.setLastError(Posix.RUNTIME, error);
      return error == 0 ? 0 : -1;
    };
  }

  @Test
  void changeOfAName_thatWasInterrupted_isMadeAgainUnlessItMayHaveBeenMade() {
    int interrupted = Errno.EINTR.number();
    int again = Errno.EAGAIN.number();
    int taken = Errno.EEXIST.number();
    assertThat(Posix.retriedUnlessMade(calls(interrupted, again, interrupted, 0))).isZero();
    assertThat(Posix.retriedUnlessMade(calls(taken))).isNegative();
    assertThat(Posix.errno()).isEqualTo(Errno.EEXIST);
    assertThat(Posix.retriedUnlessMade(calls(interrupted, again, taken))).isNegative();
    assertThat(Posix.errno()).isEqualTo(Errno.EINTR);
    assertThat(Posix.retriedUnlessInterrupted(calls(again, interrupted))).isNegative();
    assertThat(Posix.errno()).isEqualTo(Errno.EINTR);
  }
}
