package io.pmfs.source;

import static io.pmfs.source.FaultyStore.Operation.STATUS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

final class CountedBackingStoreTest {
  private final FakeStore fake = new FakeStore();
  private final FaultyStore faulty = new FaultyStore(fake);
  private final CountedBackingStore store = new CountedBackingStore(faulty);

  @Test
  void sinceLastRequest_isTheTimeSinceTheLastAnswer() throws Exception {
    AtomicLong nanos = new AtomicLong(-5);
    CountedBackingStore timed = new CountedBackingStore(faulty, nanos::get);
    assertThat(timed.sinceLastRequest()).isNull();

    timed.statistics();
    nanos.addAndGet(12);

    assertThat(timed.sinceLastRequest()).isEqualTo(Duration.ofNanos(12));
  }

  @Test
  void operations_eachKind_isCountedOnce() throws Exception {
    fake.file("f", 1, 1000);
    fake.symbolicLink("l", "f");
    FileName file = FileName.of("f");
    assertThat(store.operations().total()).isZero();

    store.status(FileName.of(""));
    store.list(FileName.of(""), names -> true);
    store.readSymbolicLink(FileName.of("l"));
    store.extendedAttributes(file);
    store.statistics();
    try (SourceFile open = store.open(file)) {
      open.read(900, ByteBuffer.allocateDirect(500));
      open.read(0, ByteBuffer.allocateDirect(10));
      open.status();
      open.seekData(0);
      open.seekHole(0);
    }

    assertThat(store.operations()).isEqualTo(new SourceOperations(1, 2, 110, 2, 1, 1, 1, 1, 2));
    assertThat(store.operations().total()).isEqualTo(11);
    assertThat(fake.openFiles()).isZero();
  }

  /** A default method of the interface would not do what the wrapped store does. */
  @Test
  void stores_aroundAnother_passOnEveryRequest() throws Exception {
    for (Class<?> type :
        List.of(CountedBackingStore.class, ReopenedStore.class, ForwardingStore.class)) {
      for (Method method : BackingStore.class.getMethods()) {
        assertThat(type.getMethod(method.getName(), method.getParameterTypes()).getDeclaringClass())
            .as(method.getName())
            .isNotEqualTo(BackingStore.class);
      }
    }
    Class<?> file = ForwardingStore.ForwardingFile.class;
    for (Method method : SourceFile.class.getMethods()) {
      assertThat(file.getMethod(method.getName(), method.getParameterTypes()).getDeclaringClass())
          .as(method.getName())
          .isNotEqualTo(SourceFile.class);
    }
  }

  @Test
  void operations_failures_areCounted() {
    FileName missing = FileName.of("none");
    assertThatThrownBy(() -> store.status(missing)).isInstanceOf(FsException.class);
    assertThatThrownBy(() -> store.open(missing)).isInstanceOf(FsException.class);

    assertThat(store.operations()).isEqualTo(new SourceOperations(1, 0, 0, 1, 0, 0, 0, 0, 0));
    assertThat(store.errors()).as("that a name is not there is an answer").isZero();

    faulty.on(STATUS).of("none").fail(Errno.EIO);
    assertThatThrownBy(() -> store.status(missing)).isInstanceOf(FsException.class);

    assertThat(store.errors()).isEqualTo(1);
  }
}
