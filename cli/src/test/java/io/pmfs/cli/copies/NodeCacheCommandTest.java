package io.pmfs.cli.copies;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cache.CacheService;
import io.pmfs.cli.TestWorld;
import io.pmfs.machine.ExitStatus;
import io.pmfs.posix.DaemonThread;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class NodeCacheCommandTest {
  @TempDir private Path temporary;

  @Test
  void status_afterAThreadOfTheCacheFailed_saysSoAndEndsWith4() throws Exception {
    TestWorld world = new TestWorld(temporary);
    Path socket = temporary.resolve("socket");
    CacheService.Settings settings =
        new CacheService.Settings(
            socket,
            world.makeDirectory("copies"),
            1 << 20,
            Duration.ofHours(1),
            List.of(world.makeDirectory("source")),
            CacheService.Limits.of(1 << 20));
    try (CacheService service = CacheService.open(settings, InstantSource.system())) {
      assertThat(service.report().trouble()).isNull();
      assertThat(world.execute("node-cache", "--status", socket.toString())).isZero();
      assertThat(world.output()).startsWith("copies   0");

      AtomicInteger runs = new AtomicInteger();
      Thread failing =
          DaemonThread.lasting(
              "copy-65",
              () -> {
                if (runs.incrementAndGet() == 1) {
                  throw new OutOfMemoryError("Cannot reserve direct buffer memory");
                }
              });
      failing.start();
      failing.join();

      assertThat(world.execute("node-cache", "--status", socket.toString()))
          .isEqualTo(ExitStatus.PARTLY);
      assertThat(world.output())
          .contains(
              "trouble  thread copy-65: java.lang.OutOfMemoryError:"
                  + " Cannot reserve direct buffer memory\n");
      assertThat(world.execute("node-cache", "--status", socket.toString(), "--json"))
          .isEqualTo(ExitStatus.PARTLY);
      assertThat(world.output()).contains("\"trouble\": \"thread copy-65: ");
    }
  }
}
