package io.pmfs.fuse.protocol;

/** Latencies recorded without a kernel. */
public final class RecordedLatencies {
  private RecordedLatencies() {}

  /** Reads that took 3 ms each. */
  public static RequestLatencies ofReads(int count) {
    RequestLatencies latencies = new RequestLatencies();
    for (int i = 0; i < count; i++) {
      latencies.add(Opcode.READ, 3_000_000);
    }
    return latencies;
  }
}
