package io.pmfs.mounts;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class MountViewersTest {
  private static final String OWN = "mnt:[1]";
  private static final String ROOT = "%d 1 8:1 / / rw - ext4 /dev/sda rw%n";
  private static final String OURS = "%d 1 0:50 / /m rw - fuse.pmfs /lustre/d rw%n";
  private static final String ANOTHERS = "%d 1 0:50 / /n rw - fuse.pmfs /lustre/other rw%n";

  @TempDir Path root;
  private MountViewers viewers;

  @BeforeEach
  void make() throws IOException {
    viewers = new MountViewers(new Surroundings(Map.of(), root, 0, "root", root));
    process("self", OWN, ROOT.formatted(10));
  }

  /** Without a namespace, it is hidden. */
  private void process(String pid, @Nullable String namespace, String mounts) throws IOException {
    Path process = Files.createDirectories(root.resolve("proc").resolve(pid));
    Files.createDirectory(process.resolve("ns"));
    if (namespace != null) {
      Files.createSymbolicLink(process.resolve("ns/mnt"), Path.of(namespace));
    }
    Files.writeString(process.resolve("mountinfo"), mounts);
    Files.writeString(process.resolve("comm"), "sleep\n");
  }

  @Test
  void elsewhere_aNamespaceWithTheMount_isNamed() throws Exception {
    process("1", OWN, ROOT.formatted(10));
    process("17", "mnt:[2]", ROOT.formatted(20) + OURS.formatted(21));
    process("18", "mnt:[2]", ROOT.formatted(20) + OURS.formatted(21));
    process("19", "mnt:[3]", ROOT.formatted(30));
    assertThat(viewers.elsewhere("0:50", "/lustre/d")).containsExactly("pid 17 (sleep)");
  }

  /** The kernel reuses the number of a mount that is gone. */
  @Test
  void elsewhere_anothersMountWithItsNumber_isNotIt() throws Exception {
    process("17", "mnt:[2]", ROOT.formatted(20) + ANOTHERS.formatted(21));
    assertThat(viewers.elsewhere("0:50", "/lustre/d")).isEmpty();
  }

  @Test
  void elsewhere_aProcessThatMayNotBeLookedAt_countsUnlessItsMountsAreOurs() throws Exception {
    process("1", null, ROOT.formatted(10) + OURS.formatted(11));
    assertThat(viewers.elsewhere("0:50", "/lustre/d")).isEmpty();
    process("17", null, ROOT.formatted(20) + OURS.formatted(21));
    assertThat(viewers.elsewhere("0:50", "/lustre/d")).containsExactly("pid 17 (sleep)");
  }

  @Test
  void areGone_anotherNamespaceWithTheMount_isFalse() throws Exception {
    process("1", "mnt:[2]", ROOT.formatted(20) + OURS.formatted(21));
    assertThat(viewers.areGone("0:50", Set.of())).isFalse();
  }

  @Test
  void areGone_aFileKeepsTheNamespace_isFalse() throws Exception {
    process(
        "1",
        "mnt:[2]",
        ROOT.formatted(20) + "21 20 0:4 %s /kept rw - nsfs nsfs rw%n".formatted(OWN));
    assertThat(viewers.areGone("0:50", Set.of())).isFalse();
  }

  /** Users choose the source of a FUSE mount, and the part of its type after the dot. */
  @Test
  void areGone_mountsWithOurNumbersAsTheirSource_isTrue() throws Exception {
    String named = "%d 20 0:60 / /n rw - fuse.pmfs %s rw%n";
    process(
        "1",
        "mnt:[2]",
        ROOT.formatted(20) + named.formatted(21, "0:50") + named.formatted(22, OWN));
    assertThat(viewers.areGone("0:50", Set.of())).isTrue();
  }
}
