package io.pmfs.it;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.primitives.Bytes;
import io.pmfs.compression.ZstdProgram;
import io.pmfs.posix.OnRequest;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Datasets of several kinds of files from compressed copies, byte for byte. */
final class CompressionIT {
  private static final int MIB = 1 << 20;
  private static final Duration LIFETIME = Duration.ofMinutes(5);

  @Installed private Installation pmfs;
  private Path source;
  private List<Path> files;

  @BeforeEach
  void makeSource() throws IOException {
    source = pmfs.directory("source");
    files = new ArrayList<>();
    Random random = new Random(1);
    for (int i = 0; i < 20; i++) {
      file("text-" + i, text(random, 100 + i * i * 700).getBytes(UTF_8));
      file("record-" + i + ".json", json(random, 5000 + 900 * i).getBytes(UTF_8));
      file("image-" + i + ".jpg", jpeg(random, 50_000 + 7001 * i));
    }
    file("empty", new byte[0]);
    file("one", new byte[] {1});
    file("walk.npy", walk(random, 3 * MIB + 77));
    file("zeros.npy", new byte[5 * MIB]);
    file("large.txt", text(random, 9 * MIB + 1).getBytes(UTF_8));
    file("random.bin", jpeg(random, 4 * MIB + 4095));
  }

  private void file(String name, byte[] content) throws IOException {
    files.add(Files.write(source.resolve(name), content));
  }

  private static String text(Random random, int size) {
    List<String> words = List.of("the", "of", "tier", "holds", "copies", "files", "forget", "read");
    StringBuilder text = new StringBuilder();
    while (text.length() < size) {
      text.append(words.get(random.nextInt(words.size()))).append(random.nextInt(100)).append(' ');
    }
    return text.substring(0, size);
  }

  private static String json(Random random, int size) {
    StringBuilder json = new StringBuilder("[");
    while (json.length() < size) {
      json.append("{\"image_id\": ").append(random.nextInt(1_000_000));
      json.append(", \"category\": \"boat\", \"bounding_box\": [");
      json.append(random.nextInt(640)).append(", ").append(random.nextInt(480)).append("]},\n");
    }
    return json.append("]").toString();
  }

  private static byte[] jpeg(Random random, int size) {
    byte[] content = new byte[size];
    random.nextBytes(content);
    content[0] = (byte) 0xff;
    content[1] = (byte) 0xd8;
    content[2] = (byte) 0xff;
    return content;
  }

  private static byte[] walk(Random random, int size) {
    ByteBuffer content = ByteBuffer.allocate(size);
    float at = 0;
    while (content.remaining() >= 4) {
      at += (float) random.nextGaussian();
      content.putFloat(at);
    }
    return content.array();
  }

  private void assertEqualBelow(Path directory) {
    for (Path file : files) {
      assertThat(Dataset.read(directory.resolve(file.getFileName())))
          .as(file.toString())
          .matches(content -> Arrays.equals(content, Dataset.read(file)), "has the right bytes");
    }
  }

  private void readRanges(Path directory, long seed, int count) throws IOException {
    Random random = new Random(seed);
    for (int i = 0; i < count; i++) {
      Path file = files.get(random.nextInt(files.size()));
      byte[] content = Dataset.read(file);
      if (content.length == 0) {
        continue;
      }
      int from = random.nextInt(content.length);
      int size = 1 + random.nextInt(Math.min(content.length - from, 1 << random.nextInt(21)));
      ByteBuffer range = ByteBuffer.allocate(size);
      try (FileChannel channel = FileChannel.open(directory.resolve(file.getFileName()))) {
        while (range.hasRemaining()) {
          assertThat(channel.read(range, from + range.position())).as("%s", file).isPositive();
        }
      }
      assertThat(range.array())
          .as("seed %d: %d bytes of %s at %d", seed, size, file, from)
          .isEqualTo(Arrays.copyOfRange(content, from, from + size));
    }
  }

  private void readInParallel(Path directory, int count) throws Exception {
    long seed = new Random().nextLong();
    ExecutorService threads = Executors.newFixedThreadPool(4);
    try {
      List<Future<?>> done = new ArrayList<>();
      for (int t = 0; t < 4; t++) {
        long own = seed + t;
        done.add(
            threads.submit(
                () -> {
                  readRanges(directory, own, count);
                  return null;
                }));
      }
      for (Future<?> future : done) {
        future.get();
      }
    } finally {
      threads.shutdownNow();
    }
  }

  private long bytes() {
    return files.stream().mapToLong(file -> file.toFile().length()).sum();
  }

  @ParameterizedTest
  @EnumSource(BridgeMode.class)
  void tree_withEachCompression_isTheSource(BridgeMode mode) throws Exception {
    mode.runsInEveryRunIf(BridgeMode.PAGE_CACHE);
    for (String compression : List.of("none", "zstd:1", "auto:3")) {
      try (MountedPmfs mount = mode.mount(pmfs, LIFETIME, source, "--compression", compression)) {
        assertEqualBelow(mount.mountpoint());
        Status status = mount.awaitCopies(files.size() - 1);
        assertThat(status.text("tiers.0.compression")).isEqualTo(compression);
        assertThat(status.number("tiers.0.contentBytes")).isEqualTo(bytes());
        if (!compression.equals("none")) {
          assertThat(status.number("tiers.0.usedBytes")).isLessThan(bytes() * 6 / 10);
        }
      }
      try (MountedPmfs mount = mode.mount(pmfs, LIFETIME, source, "--compression", compression)) {
        readInParallel(mount.mountpoint(), 100);
        assertEqualBelow(mount.mountpoint());
        Status status = mount.status();
        assertThat(status.number("sourceOperations.reads")).isZero();
        assertThat(status.number("staging.mismatches")).isZero();
        assertThat(status.number("tiers.0.contentBytes")).isEqualTo(bytes());
        pmfs.run("umount", "--purge", mount.mountpoint().toString()).expect(0);
        mount.ended();
      }
    }
  }

  @ParameterizedTest
  @EnumSource(BridgeMode.class)
  void ranges_whileCopiesComeAndGo_areTheSource(BridgeMode mode) throws Exception {
    mode.runsInEveryRunIf(BridgeMode.JNR);
    Machine.requireRoot();
    try (MountedPmfs mount =
        mode.mount(
            pmfs,
            LIFETIME,
            source,
            "--tier",
            "ssd:" + pmfs.tier() + ":14M:zstd:1",
            "--eviction",
            "lru")) {
      for (int round = 0; round < 3; round++) {
        readInParallel(mount.mountpoint(), 60);
        Machine.forget(mount.mountpoint());
      }
      assertEqualBelow(mount.mountpoint());
      Status status = mount.awaitStagingIdle();
      assertThat(status.number("staging.mismatches")).isZero();
      assertThat(status.number("reads.errors")).isZero();
    }
  }

  @Test
  @OnRequest("cases")
  void copies_byTheZstdProgram_areTheSource() throws Exception {
    ZstdProgram.assume();
    try (MountedPmfs mount = pmfs.mount(source, "--compression", "zstd")) {
      assertEqualBelow(mount.mountpoint());
      // The empty file needs none.
      Status status = mount.awaitCopies(files.size() - 1);
      assertThat(status.number("tiers.0.copies")).isEqualTo(files.size() - 1);
    }
    List<byte[]> contents = new ArrayList<>();
    for (Path copies : storage()) {
      Path decoded = pmfs.directory("decoded").resolve(copies.getFileName());
      // Of a bundle, the contents of all its copies.
      ZstdProgram.run("-q", "-f", "-d", copies.toString(), "-o", decoded.toString());
      contents.add(Dataset.read(decoded));
    }
    for (Path file : files) {
      byte[] content = Dataset.read(file);
      assertThat(contents).as("%s", file).anyMatch(c -> Bytes.indexOf(c, content) >= 0);
    }
  }

  /** The files that hold copies, one or many each. */
  private List<Path> storage() {
    List<Path> storage =
        pmfs.copies().stream()
            .filter(file -> file.toString().matches(".*/(copies|bundles)/.*"))
            .toList();
    assertThat(storage).anyMatch(file -> file.toString().contains("/copies/"));
    assertThat(storage).anyMatch(file -> file.toString().contains("/bundles/"));
    return storage;
  }

  @Test
  @OnRequest("cases")
  void damage_ofEveryCopy_isNeverServed() throws Exception {
    try (MountedPmfs mount = pmfs.mount(source, "--compression", "zstd")) {
      assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(files.size() - 1);
    }
    for (Path copies : storage()) {
      byte[] bytes = Dataset.read(copies);
      for (int at = 0; at < bytes.length; at += 32) {
        bytes[at] ^= 0x5a;
      }
      Files.write(copies, bytes);
    }
    try (MountedPmfs mount = pmfs.mount(source, "--compression", "zstd")) {
      assertEqualBelow(mount.mountpoint());
      assertThat(mount.status().number("staging.mismatches")).isGreaterThan(files.size() / 2);
      assertThat(mount.status().number("reads.errors")).isZero();
    }
  }

  @Test
  @OnRequest("cases")
  void daemon_killedWhileItCompresses_leavesNothingWrong() throws Exception {
    Machine.requireRoot();
    MountedPmfs killed = pmfs.mount(source, "--compression", "zstd:19");
    assertThat(Dataset.read(killed.mountpoint().resolve("large.txt")))
        .isEqualTo(Dataset.read(source.resolve("large.txt")));
    killed.kill9();
    MountedPmfs.detach(killed.mountpoint());
    try (MountedPmfs mount = pmfs.mount(source, "--compression", "zstd:1")) {
      assertEqualBelow(mount.mountpoint());
      Status status = mount.awaitCopies(files.size() - 1);
      assertThat(status.number("tiers.0.contentBytes")).isEqualTo(bytes());
    }
  }
}
