package io.pmfs.it;

import static io.pmfs.tier.FaultyStore.Operation.READ;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.metadata.FileName;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the kernel keeps, and is told to forget. */
@Timeout(value = 90, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class InvalidationIT {
  private static final int SIZE = 100_000;

  private Scratch scratch;
  private OwnMount mount;

  @BeforeEach
  void mount() throws IOException {
    Machine.requireFuse();
    Machine.requireRoot();
    scratch = new Scratch();
    Path tree = scratch.directory("tree");
    Files.write(tree.resolve("file"), new byte[SIZE]);
    mount = new OwnMount(scratch, tree);
  }

  @AfterEach
  void unmount() {
    try {
      if (mount != null) {
        mount.close();
      }
    } finally {
      if (scratch != null) {
        scratch.close();
      }
    }
  }

  private void readFile() throws IOException {
    assertThat(Files.readAllBytes(mount.path("file"))).hasSize(SIZE);
  }

  @Test
  void content_keptByTheKernel_isAskedForAgainOnceInvalidated() throws Exception {
    readFile();
    long cold = mount.reads();
    assertThat(cold).isPositive();
    readFile();
    assertThat(mount.reads()).as("the kernel keeps it").isEqualTo(cold);

    assertThat(mount.bridge().invalidateInode(mount.inode("file"))).isTrue();
    readFile();
    assertThat(mount.reads()).isGreaterThan(cold);
  }

  @Test
  void name_keptByTheKernel_isLookedUpAgainOnceInvalidated() throws Exception {
    assertThat(Files.exists(mount.path("file"))).isTrue();
    assertThat(Files.exists(mount.path("absent"))).isFalse();
    int before = mount.lookups();
    assertThat(Files.exists(mount.path("file"))).isTrue();
    assertThat(Files.exists(mount.path("absent"))).isFalse();
    assertThat(mount.lookups()).as("the kernel keeps names and absence").isEqualTo(before);

    for (String name : new String[] {"file", "absent"}) {
      assertThat(mount.bridge().invalidateEntry(PmfsFileSystem.ROOT, FileName.of(name))).isTrue();
    }
    assertThat(Files.exists(mount.path("file"))).isTrue();
    assertThat(Files.exists(mount.path("absent"))).isFalse();
    assertThat(mount.lookups()).isEqualTo(before + 2);
  }

  @Test
  void invalidation_ofWhatTheKernelDoesNotKnow_saysSo() throws Exception {
    assertThat(mount.bridge().invalidateInode(4711)).isFalse();
    assertThat(mount.bridge().invalidateEntry(4711, FileName.of("file"))).isFalse();
    assertThat(mount.bridge().invalidateEntry(PmfsFileSystem.ROOT, FileName.of("never"))).isFalse();
  }

  @Test
  void invalidation_whileItsFileIsBeingRead_waitsForTheAnswerAndEnds() throws Exception {
    CountDownLatch reading = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    AtomicReference<Throwable> byWorker = new AtomicReference<>();
    long inode = mount.inode("file");
    mount
        .source()
        .on(READ)
        .run(
            path -> {
              try {
                mount.bridge().invalidateInode(inode);
              } catch (Throwable e) {
                byWorker.set(e);
              }
              reading.countDown();
              await(goOn);
            });
    CompletableFuture<Void> reader =
        CompletableFuture.runAsync(
            () -> {
              try {
                readFile();
              } catch (IOException e) {
                throw new AssertionError(e);
              }
            });
    await(reading);
    CompletableFuture<Boolean> invalidation =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return mount.bridge().invalidateInode(inode);
              } catch (Exception e) {
                throw new AssertionError(e);
              }
            });
    assertThat(Files.size(mount.path("file"))).as("others are answered").isEqualTo(SIZE);
    goOn.countDown();
    reader.get(30, TimeUnit.SECONDS);
    assertThat(invalidation.get(30, TimeUnit.SECONDS)).isTrue();
    assertThat(byWorker.get())
        .as("a thread that answers requests would wait for itself")
        .isInstanceOf(IllegalStateException.class);
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(Duration.ofSeconds(30).toMillis(), TimeUnit.MILLISECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void invalidation_afterTheEnd_isNothing() throws Exception {
    long inode = mount.inode("file");
    mount.bridge().unmount(false);
    assertThat(mount.bridge().awaitEnd(Duration.ofSeconds(30))).isTrue();
    assertThat(mount.bridge().invalidateInode(inode)).isFalse();
  }
}
