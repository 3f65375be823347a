package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** How the read mode comes about when none is asked for. */
@Tag("alone") // counts what the kernel asks for: other tests empty its caches
final class ReadModeIT {
  private static final int MIB = 1 << 20;

  @Installed(byRoot = true)
  private Installation pmfs;

  @Test
  void auto_ofSmallFiles_isPageCacheFromTheSecondEpochOn() {
    Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(120, 20_000));
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      assertMode(mount.awaitCopies(120), "auto", "or copies are read again");
      dataset.assertEqualBelow(mount.mountpoint());
      assertMode(mount.status(), "page-cache", "most copies are small");
      long asked = mount.status().number("reads.requests");
      dataset.assertEqualBelow(mount.mountpoint());
      // Some pages may have been reclaimed; if it asked each time it would be 120 more.
      assertThat(mount.status().number("reads.requests"))
          .as("the kernel reads alone")
          .isLessThan(asked + 60);
      replaceDaemon(mount);
      assertMode(mount.status(), "page-cache", "");
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  /** Loaders list a dataset before they read it: then all sizes are known in the first epoch. */
  @Test
  void auto_ofSmallFiles_whoseNamesAreAllKnown_isPageCacheInTheFirstEpoch()
      throws InterruptedException {
    Path source = pmfs.directory("source");
    Dataset small = Dataset.create(directory(source, "small"), Dataset.sizes(300, 20_000));
    directory(source, "other");
    try (MountedPmfs mount = pmfs.mount(source)) {
      Path mounted = mount.mountpoint().resolve("small");
      assertThat(filesBelow(mounted)).isEqualTo(300);
      readSome(small, mounted, 0, 130);
      // Large files may be in the directory that was not listed.
      Thread.sleep(1000);
      assertThat(mount.status().text("readMode")).isEqualTo("auto");
    }
    try (MountedPmfs mount = pmfs.mount(source, "--tier", "ssd:" + pmfs.directory("again"))) {
      Path mounted = mount.mountpoint().resolve("small");
      assertThat(filesBelow(mount.mountpoint().resolve("other"))).isZero();
      assertThat(filesBelow(mounted)).isEqualTo(300);
      readSome(small, mounted, 0, 130);
      Await.until(
          "page-cache mode",
          Duration.ofSeconds(10),
          () -> mount.status().text("readMode").equals("page-cache"));
      assertMode(mount.status(), "page-cache", "most copies are small");
      small.assertEqualBelow(mounted);
    }
  }

  private static void readSome(Dataset dataset, Path mounted, int from, int to) {
    dataset
        .items()
        .subList(from, to)
        .forEach(item -> assertThat(Dataset.read(mounted.resolve(item.name()))).isNotEmpty());
  }

  private static long filesBelow(Path directory) {
    try (Stream<Path> all = Files.walk(directory)) {
      return all.filter(Files::isRegularFile).count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Path directory(Path parent, String name) {
    try {
      return Files.createDirectories(parent.resolve(name));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void auto_ofLargeFiles_isPassthroughFromTheSecondEpochOn() {
    Dataset dataset = Dataset.create(pmfs.directory("source"), 5 * MIB, 6 * MIB, 4 * MIB);
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(3);
      dataset.items().forEach(item -> assertThat(Posix.readByte(mount.path(item.name()))).isOne());
      assertMode(mount.status(), "passthrough", "the kernel can read 5,120 KiB");
      dataset.assertEqualBelow(mount.mountpoint());
      replaceDaemon(mount);
      assertMode(mount.status(), "passthrough", "");
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  @Test
  void auto_ofManySmallAndSomeLargeFiles_passesTheLargeOnesThrough() {
    int[] sizes = new int[140];
    java.util.Arrays.fill(sizes, 0, 120, 20_000);
    java.util.Arrays.fill(sizes, 120, 140, 5 * MIB);
    Dataset dataset = Dataset.create(pmfs.directory("source"), sizes);
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(140);
      dataset.assertEqualBelow(mount.mountpoint());
      assertMode(
          mount.status(), "passthrough", "the kernel can read 731 KiB of each copy on average");
      long read = mount.status().number("reads.bytes");
      dataset.assertEqualBelow(mount.mountpoint());
      assertThat(mount.status().number("reads.bytes") - read)
          .as("the large files are not read through the daemon")
          .isLessThan(5 * MIB);
    }
  }

  /** The kernel opens no file without the daemon that is open in passthrough. */
  @Test
  void auto_ofSmallFiles_whileALargeOneIsOpenInPassthrough_opensThatOneAgain() {
    int[] sizes = new int[121];
    java.util.Arrays.fill(sizes, 20_000);
    sizes[120] = 5 * MIB;
    Dataset dataset = Dataset.create(pmfs.directory("source"), sizes);
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(121);
      Dataset.Item large = dataset.items().get(120);
      try (Mapping held = new Mapping(mount.path(large.name()), 5 * MIB)) {
        assertThat(mount.status().number("reads.opensLeftToKernel")).isPositive();
        dataset.items().forEach(item -> Posix.readByte(mount.path(item.name())));
        assertMode(mount.status(), "page-cache", "the kernel can read");
        try (Mapping again = new Mapping(mount.path(large.name()), 5 * MIB)) {
          again.assertEquals(large);
        }
        held.assertEquals(large);
      }
      long opens = mount.status().number("reads.opensLeftToKernel");
      for (int i = 0; i < 2; i++) {
        dataset.assertEqualBelow(mount.mountpoint());
        try (Mapping again = new Mapping(mount.path(large.name()), 5 * MIB)) {
          again.assertEquals(large);
        }
      }
      assertThat(mount.status().number("reads.opensLeftToKernel")).isEqualTo(opens);
    }
  }

  /** Copies that a mount without it left in bundles are no files for the kernel. */
  @Test
  void passthrough_overBundles_saysThatItIsHardlyInEffectUntilTheyAreFiles() {
    Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(120, 20_000));
    try (MountedPmfs mount = pmfs.mount(dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(120);
    }
    try (MountedPmfs mount = pmfs.mount(dataset.root(), "--read-mode", "passthrough")) {
      assertMode(mount.status(), "passthrough", "as requested");
      dataset.assertEqualBelow(mount.mountpoint());
      assertMode(
          mount.status(),
          "passthrough",
          "hardly in effect: 120 of 120 opened copies are compressed");

      pmfs.run("evict", mount.mountpoint().toString()).expect(0);
      pmfs.run("stage", mount.mountpoint().toString()).expect(0);
      for (int i = 0; i < 2; i++) {
        dataset.assertEqualBelow(mount.mountpoint());
      }
      assertMode(mount.status(), "passthrough", "as requested");
    }
  }

  @Test
  @OnRequest("cases")
  void auto_ofCompressedCopies_isPageCacheFromTheSecondEpochOn() {
    Path source = pmfs.directory("source");
    for (int i = 0; i < 100; i++) {
      write(source.resolve("large" + i), new byte[2 * MIB]);
    }
    try (MountedPmfs mount = pmfs.mount(source, "--compression", "zstd")) {
      for (int i = 0; i < 100; i++) {
        assertThat(Dataset.read(mount.mountpoint().resolve("large" + i)))
            .isEqualTo(new byte[2 * MIB]);
      }
      mount.awaitCopies(100);
      for (int i = 0; i < 100; i++) {
        assertThat(Posix.readByte(mount.path("large" + i))).isOne();
      }
      assertMode(mount.status(), "page-cache", "most copies are small, compressed or in a pool");
    }
  }

  private static void write(Path file, byte[] content) {
    try {
      Files.write(file, content);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void assertMode(Status status, String mode, String reason) {
    assertThat(status.text("readMode")).isEqualTo(mode);
    assertThat(status.text("readModeReason")).contains(reason);
  }

  private void replaceDaemon(MountedPmfs mount) {
    pmfs.run("upgrade", mount.mountpoint().toString()).expect(0);
  }
}
