package io.pmfs.cli.copies;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.pmfs.cli.TestWorld;
import io.pmfs.machine.ExitStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class CacheCommandTest {
  private static final String IMAGENET = "imagenet-0123456789abcdef";
  private static final String COCO = "coco-fedcba9876543210";
  private static final int COPY_BYTES = 8192;

  @TempDir private Path temporary;
  private TestWorld world;
  private Path cache;

  @BeforeEach
  void makeTwoDatasets() throws IOException {
    world = new TestWorld(temporary);
    cache = world.makeDirectory("cache");
    make(IMAGENET, "/lustre/imagenet", Duration.ofDays(40));
    make(COCO, "/lustre/coco", Duration.ofHours(1));
  }

  private void make(String name, String source, Duration unused) throws IOException {
    Path copies = world.makeDirectory("cache/" + name + "/copies/00/00");
    Files.write(copies.resolve("000002"), new byte[COPY_BYTES]);
    Path directory = cache.resolve(name);
    Files.writeString(directory.resolve("source"), source + "\n");
    Path state = world.makeDirectory("cache/state/" + name);
    FileTime then = FileTime.from(Instant.now().minus(unused));
    for (Path lock : new Path[] {directory.resolve("lock"), state.resolve("LOCK")}) {
      Files.createFile(lock);
      Files.setLastModifiedTime(lock, then);
    }
    Files.setLastModifiedTime(directory, then);
    Files.setLastModifiedTime(state, then);
  }

  private boolean isThere(String name) {
    return Files.exists(cache.resolve(name)) || Files.exists(cache.resolve("state").resolve(name));
  }

  @Test
  void cache_unmounted_listsDatasetsWithSourceSizeAndUse() {
    assertThat(world.execute("cache")).isZero();

    assertThat(world.output().lines())
        .contains("/lustre/coco", "/lustre/imagenet")
        .anyMatch(line -> line.contains("1h 0m ago, not mounted; named " + COCO))
        .anyMatch(line -> line.contains("40d 0h ago, not mounted; named " + IMAGENET))
        .anyMatch(line -> line.endsWith("ssd:" + cache))
        .anyMatch(line -> line.endsWith("state:" + cache.resolve("state")));
  }

  @Test
  void cache_json_hasEachPlace() {
    assertThat(world.execute("cache", "--json", "/lustre/coco")).isZero();

    JsonArray all = JsonParser.parseString(world.output()).getAsJsonArray();
    assertThat(all).hasSize(1);
    JsonObject coco = all.get(0).getAsJsonObject();
    assertThat(coco.get("name").getAsString()).isEqualTo(COCO);
    assertThat(coco.get("bytes").getAsLong()).isGreaterThanOrEqualTo(COPY_BYTES);
    assertThat(coco.get("inUse").getAsBoolean()).isFalse();
    assertThat(coco.getAsJsonArray("places")).hasSize(2);
  }

  @Test
  void purge_bySource_removesCopiesAndStateOfThatDatasetOnly() {
    assertThat(world.execute("cache", "--purge", "/lustre/imagenet")).isZero();

    assertThat(isThere(IMAGENET)).isFalse();
    assertThat(isThere(COCO)).isTrue();
  }

  /** Where pmfs run keeps copies while another job uses those of the tier. */
  @Test
  void placesOfFurtherRuns_areListedAndPurged() throws IOException {
    Path apart = Files.createDirectory(cache.resolve("run-2"));
    Path state = Files.createDirectory(cache.resolve("state/run-2"));
    Files.move(cache.resolve(IMAGENET), apart.resolve(IMAGENET));
    Files.move(cache.resolve("state").resolve(IMAGENET), state.resolve(IMAGENET));
    Path others = Files.createDirectories(cache.resolve("run-x").resolve(COCO));

    assertThat(world.execute("cache", "/lustre/imagenet")).isZero();
    assertThat(world.output().lines())
        .anyMatch(line -> line.endsWith("ssd:" + apart))
        .anyMatch(line -> line.endsWith("state:" + state));
    assertThat(world.execute("cache", "--purge", "--all")).isZero();

    assertThat(apart).doesNotExist();
    assertThat(state).doesNotExist();
    assertThat(others).exists();
    assertThat(isThere(COCO)).isFalse();
  }

  @Test
  void copiesThatSetsShare_countOnce() throws IOException {
    assertThat(world.execute("cache", "--json", "/lustre/imagenet")).isZero();
    long alone = bytes();
    Path copy = cache.resolve(IMAGENET).resolve("copies/00/00/000002");
    Path apart = Files.createDirectories(cache.resolve("run-2").resolve(IMAGENET));
    Files.createFile(apart.resolve("lock"));
    Files.createDirectories(apart.resolve("copies/00/00"));
    Files.createLink(apart.resolve("copies/00/00/000001"), copy);
    assertThat(world.execute("cache", "--json", "/lustre/imagenet")).isZero();
    assertThat(bytes()).isEqualTo(alone);
  }

  private long bytes() {
    JsonArray all = JsonParser.parseString(world.output()).getAsJsonArray();
    return all.get(0).getAsJsonObject().get("bytes").getAsLong();
  }

  @Test
  void purge_dryRun_removesNothing() {
    assertThat(world.execute("cache", "--purge", "--all", "--dry-run")).isZero();

    assertThat(world.output()).contains("/lustre/imagenet: ", "would be removed");
    assertThat(isThere(IMAGENET)).isTrue();
    assertThat(isThere(COCO)).isTrue();
  }

  @Test
  void purge_unusedFor_keepsWhatWasUsedSince() {
    assertThat(world.execute("cache", "--purge", "--unused-for", "30d")).isZero();

    assertThat(isThere(IMAGENET)).isFalse();
    assertThat(isThere(COCO)).isTrue();
  }

  @Test
  void purge_keep_removesTheLeastRecentlyUsedUntilTheRestFits() {
    assertThat(world.execute("cache", "--purge", "--keep", "20K")).isZero();

    assertThat(isThere(IMAGENET)).isFalse();
    assertThat(isThere(COCO)).isTrue();
  }

  @Test
  void purge_datasetInUse_isRefused() throws IOException, InterruptedException {
    // Another process takes the lock, because a process does not see its own locks.
    Process holder =
        new ProcessBuilder(
                "python3",
                "-c",
                "import fcntl,sys,time; f=open(sys.argv[1],'r+');"
                    + " fcntl.lockf(f,fcntl.LOCK_EX); print('locked',flush=True); time.sleep(60)",
                cache.resolve(IMAGENET).resolve("lock").toString())
            .start();
    try {
      assertThat(holder.inputReader().readLine()).isEqualTo("locked");

      assertThat(world.execute("cache", "--purge", "/lustre/imagenet"))
          .isEqualTo(ExitStatus.IN_USE);
      assertThat(world.errors()).contains("a mount uses " + IMAGENET);
      assertThat(world.execute("cache", "--purge", "--all")).isZero();
      assertThat(world.output()).contains("/lustre/imagenet: kept: in use, mounted");
    } finally {
      holder.destroyForcibly().waitFor();
    }

    assertThat(isThere(IMAGENET)).isTrue();
    assertThat(isThere(COCO)).isFalse();
  }

  @Test
  void purge_nothingNamed_isWrongUsage() {
    assertThat(world.execute("cache", "--purge")).isEqualTo(ExitStatus.USAGE);
    assertThat(world.errors()).startsWith("pmfs: --purge: ");
    assertThat(isThere(IMAGENET)).isTrue();
  }

  @Test
  void purge_unknownDataset_isWrongUsage() {
    assertThat(world.execute("cache", "--purge", "/lustre/other")).isEqualTo(ExitStatus.USAGE);
    assertThat(world.errors().lines()).hasSize(1);
  }

  @Test
  void list_tierGiven_looksThere() throws IOException {
    Path other = world.makeDirectory("other/voc-0000000000000000");
    Files.createFile(other.resolve("lock"));

    assertThat(world.execute("cache", "--tier", "ssd:" + other.getParent())).isZero();

    assertThat(world.output()).contains("voc-0000000000000000");
  }
}
