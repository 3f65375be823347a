package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.fuse.ReadMode;
import io.pmfs.posix.Await;
import io.pmfs.tier.DirectoryTier;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierSettings;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the kernel does with a file of another version. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class ReplacedInodeIT {
  private static final int SIZE = 8 << 20;
  private static final int OPENS = 1100;

  @Installed(byRoot = true)
  private Installation pmfs;

  /** Once the kernel opens files without asking. */
  @Test
  void file_ofAnotherVersion_isReadWholeOrNotAtAll() throws Exception {
    Path tree = pmfs.directory("source");
    Files.write(tree.resolve("small"), new byte[10]);
    Files.write(tree.resolve("f"), filled(1, SIZE));
    try (OwnMount mount = new OwnMount(pmfs.scratch(), tree)) {
      mount.source().beSecondHand();
      for (int i = 0; i < OPENS; i++) {
        Files.readAllBytes(mount.path("small"));
      }
      FileChannel open = FileChannel.open(mount.path("f"));
      assertThat(open.read(ByteBuffer.allocate(1000), 0)).isEqualTo(1000);
      Files.write(tree.resolve("f"), filled(2, SIZE + 1));
      mount.lookAgain("f");

      // Not from the cache.
      assertThatThrownBy(() -> open.read(ByteBuffer.allocate(1000), SIZE / 2))
          .isInstanceOf(IOException.class);
      byte[] now = Files.readAllBytes(mount.path("f"));
      assertThat(Arrays.equals(now, filled(2, SIZE + 1))).isTrue();
      requireFormer(open);
      assertThatThrownBy(() -> open.read(ByteBuffer.allocate(1000), SIZE / 2))
          .isInstanceOf(IOException.class);
      open.close();
    }
  }

  /** The kernel has the former bytes, or asks in vain. */
  private static void requireFormer(FileChannel open) {
    ByteBuffer bytes = ByteBuffer.allocate(1000);
    try {
      open.read(bytes, 0);
    } catch (IOException e) {
      return;
    }
    assertThat(bytes.array()).containsOnly(1);
  }

  @Test
  void fileInPassthrough_ofAnotherVersion_isReadWholeWhileTheFormerIsOpen() throws Exception {
    Machine.requirePassthrough();
    Path tree = pmfs.directory("source");
    Files.write(tree.resolve("f"), filled(1, SIZE));
    TierSettings settings = new TierSettings("tier", "ssd", pmfs.directory("tier"), 4L * SIZE, 0);
    Tier tier = new DirectoryTier(settings, Tier.Usage.NONE, null);
    try (OwnMount mount = new OwnMount(pmfs.scratch(), tree, ReadMode.PASSTHROUGH, List.of(tier))) {
      mount.source().beSecondHand();
      Files.readAllBytes(mount.path("f"));
      Await.until("f is copied", () -> mount.copies() > 0);
      awaitPassthrough(mount);
      FileChannel open = FileChannel.open(mount.path("f"));
      Files.write(tree.resolve("f"), filled(2, SIZE + 1));
      mount.lookAgain("f");

      byte[] now = Files.readAllBytes(mount.path("f"));
      assertThat(Arrays.equals(now, filled(2, SIZE + 1))).isTrue();
      Await.until("f is copied again", () -> mount.copies() > 1);
      awaitPassthrough(mount);
      now = Files.readAllBytes(mount.path("f"));
      assertThat(Arrays.equals(now, filled(2, SIZE + 1))).isTrue();
      requireFormer(open);
      open.close();
    }
  }

  /** Until a close is reported, further opens go through the daemon as the first one did. */
  private static void awaitPassthrough(OwnMount mount) throws IOException {
    long before = mount.bridge().bytesLeftToKernel();
    Await.until(
        "f is opened in passthrough",
        () -> {
          FileChannel.open(mount.path("f")).close();
          return mount.bridge().bytesLeftToKernel() > before;
        });
  }

  private static byte[] filled(int value, int size) {
    byte[] bytes = new byte[size];
    Arrays.fill(bytes, (byte) value);
    return bytes;
  }
}
