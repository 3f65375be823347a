package io.pmfs.source;

import static io.pmfs.source.FaultyStore.Operation.OPEN;
import static io.pmfs.source.FaultyStore.Operation.READ;
import static io.pmfs.source.FaultyStore.Operation.STATUS;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.tier.Hold;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

final class FaultyStoreTest {
  private final FakeStore real = new FakeStore();
  private final FaultyStore store = new FaultyStore(real);

  @BeforeEach
  void makeFiles() {
    real.file("a", 1, 100);
    real.file("b", 2, 100);
  }

  /** The error of a read; null for success. */
  private @Nullable Errno read(String path, long offset) {
    try (SourceFile file = store.open(FileName.of(path))) {
      file.read(offset, ByteBuffer.allocate(1));
      return null;
    } catch (FsException e) {
      return e.errno();
    }
  }

  @Test
  void on_operationAndPath_choosesNoOther() throws Exception {
    store.on(READ, STATUS).of("a").fail(Errno.EACCES);
    assertThat(read("a", 0)).isEqualTo(Errno.EACCES);
    assertThat(read("b", 0)).isNull();
    store.open(FileName.of("a")).close();
    store.clearFaults();
    assertThat(read("a", 0)).isNull();
  }

  @Test
  void on_nothing_choosesAll() {
    store.on().fail(Errno.EIO);
    assertThat(read("b", 0)).isEqualTo(Errno.EIO);
  }

  @Test
  void offsets_chooseFromTheFirstToBeforeTheSecond() {
    store.on(READ).from(10).before(20).fail(Errno.EIO);
    assertThat(read("a", 9)).isNull();
    assertThat(read("a", 10)).isEqualTo(Errno.EIO);
    assertThat(read("a", 19)).isEqualTo(Errno.EIO);
    assertThat(read("a", 20)).isNull();
    store.on(READ).at(30).fail(Errno.EIO);
    assertThat(read("a", 29)).isNull();
    assertThat(read("a", 30)).isEqualTo(Errno.EIO);
    assertThat(read("a", 31)).isNull();
  }

  @Test
  void nth_countsTheChosenOnesOnly() {
    store.on(READ).of("b").nth(2).fail(Errno.EIO);
    assertThat(read("b", 0)).isNull();
    assertThat(read("a", 0)).isNull();
    assertThat(read("b", 0)).isEqualTo(Errno.EIO);
    assertThat(read("b", 0)).isNull();
  }

  @Test
  void by_choosesThreadsByTheirNames() {
    store.on().by("nobody").fail(Errno.EIO);
    assertThat(read("a", 0)).isNull();
    store.on().by(Thread.currentThread().getName()).fail(Errno.EIO);
    assertThat(read("a", 0)).isEqualTo(Errno.EIO);
  }

  @Test
  void clearFaults_whileRequestsAreHeld_letsThemGoOn() {
    Hold opens = store.on(OPEN).hold();
    CompletableFuture<@Nullable Errno> reader = CompletableFuture.supplyAsync(() -> read("a", 0));
    opens.awaitReached();
    assertThat(reader).isNotDone();
    store.clearFaults();
    assertThat(reader.join()).isNull();
    assertThat(opens.count()).isEqualTo(1);
  }
}
