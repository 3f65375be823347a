package io.pmfs.metadata;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.table.Family;
import io.pmfs.table.Faults;
import io.pmfs.table.RocksFiles;
import io.pmfs.table.RocksStore;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class AttributeRecordsTest {
  private static final long MEMORY = RocksFiles.MIN_MEMORY_BYTES;
  private static final Instant CHANGE = Instant.ofEpochSecond(7, 9);
  private static final FileName LIST = FileName.of("list");

  @TempDir private Path state;

  @SuppressWarnings("NullAway.Init")
  AttributeRecordsTest() {}

  private RocksNamespace open() {
    return Samples.open(state, "/data/set", MEMORY);
  }

  private static Map<FileName, byte[]> attributes(long number) {
    return Map.of(FileName.of("user.n"), Long.toString(number).getBytes(UTF_8));
  }

  private static void assertKept(RocksNamespace namespace, long number) {
    assertThat(Objects.requireNonNull(namespace.extendedAttributes(number, CHANGE)))
        .containsExactlyEntriesOf(attributes(number));
    assertThat(namespace.accessList(number, CHANGE)).isEqualTo(LIST);
  }

  @Test
  void records_ofManyThreads_areThereAtOnceAndAfterwards() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(8);
    try (RocksNamespace namespace = open()) {
      List<Future<?>> putting = new ArrayList<>();
      for (int thread = 0; thread < 8; thread++) {
        long first = 10 + 1000L * thread;
        putting.add(
            threads.submit(
                () -> {
                  for (long number = first; number < first + 1000; number++) {
                    namespace.putExtendedAttributes(number, CHANGE, attributes(number));
                    namespace.putAccessList(number, CHANGE, LIST);
                    assertKept(namespace, number);
                  }
                }));
      }
      for (Future<?> one : putting) {
        one.get();
      }
    } finally {
      threads.shutdownNow();
    }
    try (RocksNamespace namespace = open()) {
      for (long number = 10; number < 8010; number++) {
        assertKept(namespace, number);
      }
    }
  }

  @Test
  void record_thatComesAlone_outlivesTheProcess() {
    try (RocksNamespace namespace = open()) {
      namespace.putExtendedAttributes(2, CHANGE, attributes(2));
      try (RocksStore now =
          RocksFiles.openReadOnly(state, List.of(Family.values()), MEMORY, Faults.NONE)) {
        assertThat(now.get(Family.XATTRS, Keys.number(2))).isNotNull();
      }
    }
  }

  @Test
  void records_thatAreAskedToBeRecorded_outliveTheProcess() {
    try (RocksNamespace namespace = open()) {
      for (long number = 2; number < 20; number++) {
        namespace.putExtendedAttributes(number, CHANGE, attributes(number));
      }
      namespace.recordAttributes();
      try (RocksStore now =
          RocksFiles.openReadOnly(state, List.of(Family.values()), MEMORY, Faults.NONE)) {
        for (long number = 2; number < 20; number++) {
          assertThat(now.get(Family.XATTRS, Keys.number(number))).isNotNull();
        }
      }
    }
  }

  @Test
  void record_thatIsReplacedBeforeItIsWritten_isTheLaterOne() {
    try (RocksNamespace namespace = open()) {
      for (long number = 2; number < 20; number++) {
        namespace.putExtendedAttributes(7, CHANGE, attributes(number));
      }
      assertThat(namespace.extendedAttributes(7, CHANGE)).containsExactlyEntriesOf(attributes(19));
    }
    try (RocksNamespace namespace = open()) {
      assertThat(namespace.extendedAttributes(7, CHANGE)).containsExactlyEntriesOf(attributes(19));
    }
  }
}
