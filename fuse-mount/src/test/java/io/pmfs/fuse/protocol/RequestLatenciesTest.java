package io.pmfs.fuse.protocol;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class RequestLatenciesTest {
  private final RequestLatencies latencies = new RequestLatencies();

  @ParameterizedTest
  @CsvSource({
    "-5, 0",
    "0, 0",
    "1, 0",
    "4096, 0",
    "4097, 1",
    "8192, 1",
    "8193, 2",
    "1000000, 8",
    "34359738368, 23",
    "34359738369, 24",
    "9223372036854775807, 24"
  })
  void add_duration_isInTheBucketWhoseBoundItDoesNotExceed(long nanoseconds, int bucket) {
    latencies.add(Opcode.READ, nanoseconds);

    List<Long> buckets = latencies.snapshot().get(0).buckets();

    assertThat(buckets).hasSize(RequestLatencies.boundsSeconds().size() + 1);
    assertThat(buckets.indexOf(1L)).isEqualTo(bucket);
    assertThat(buckets.stream().mapToLong(Long::longValue).sum()).isEqualTo(1);
    if (bucket > 0) {
      assertThat(nanoseconds / 1e9).isGreaterThan(RequestLatencies.boundsSeconds().get(bucket - 1));
    }
  }

  @Test
  void snapshot_severalOperations_hasTheirSums() {
    latencies.add(Opcode.READ, 1_000_000);
    latencies.add(Opcode.LOOKUP, 2_000_000);
    latencies.add(Opcode.READ, 3_000_000);

    assertThat(latencies.snapshot())
        .extracting(RequestLatencies.Operation::operation, RequestLatencies.Operation::count)
        .containsExactly(tuple("lookup", 1L), tuple("read", 2L));
    assertThat(latencies.snapshot().get(1).sumSeconds()).isEqualTo(0.004);
  }

  @Test
  void end_whileOff_recordsNothing() {
    latencies.record(false);
    latencies.end(Opcode.READ, latencies.begin());
    assertThat(latencies.snapshot()).isEmpty();

    latencies.record(true);
    latencies.end(Opcode.READ, latencies.begin());
    assertThat(latencies.snapshot()).hasSize(1);
  }
}
