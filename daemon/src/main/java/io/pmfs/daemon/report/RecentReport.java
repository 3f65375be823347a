package io.pmfs.daemon.report;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Where readers' bytes recently came from, and the requests to the source. */
public record RecentReport(
    @Figure(
            "bytes that this node's readers received in the recent past, as for `engagement`; the"
                + " next figures are its parts")
        long bytes,
    List<TierBytes> tiers,
    @Figure(
            "bytes of copies that the kernel reads by itself (passthrough), each counted as if it"
                + " were read whole, once for each open")
        long leftToKernel,
    @Figure(
            "bytes of the source's files that the kernel reads by itself, counted in the same way;"
                + " null if the daemon is older than this figure")
        @Nullable Long sourceLeftToKernel,
    @Figure("bytes that had just been fetched, as in `reads.fetched`") long fetched,
    @Figure(
            "bytes for which a reader waited for a peer, the node's cache or a copy of another job,"
                + " estimated: bytes that readers waited for are divided in proportion to all bytes"
                + " from these and from the source")
        long fromPeers,
    @Figure("bytes for which a reader waited for the source") long fromSource,
    @Figure("requests to the source in the last minute, of all kinds and for all purposes")
        long sourceOperations,
    @Figure(
            "time since the last request to the source; 0 during one; null if this daemon has sent"
                + " none")
        @Nullable Long sourceIdleSeconds) {
  /** The bytes from one tier. */
  public record TierBytes(
      @Figure("the tier's kind") String kind,
      @Figure("bytes from whole copies of the tier") long bytes) {}

  /**
   * The report of one daemon.
   *
   * @param tiers the tiers, in the order of {@code origins}
   * @param origins the bytes of the recent past
   * @param sinceLastRequest the time since the last request to the source; null if there was none
   */
  public static RecentReport of(
      List<TierReport> tiers,
      RecentReads.Origins origins,
      long sourceOperations,
      @Nullable Duration sinceLastRequest) {
    List<TierBytes> parts = new ArrayList<>();
    for (int i = 0; i < tiers.size(); i++) {
      parts.add(new TierBytes(tiers.get(i).kind(), origins.tier(i)));
    }
    long arrived = origins.peers() + origins.source();
    long fromPeers =
        arrived == 0 ? 0 : Math.round((double) origins.waited() * origins.peers() / arrived);
    return new RecentReport(
        origins.bytes(),
        parts,
        origins.leftToKernel(),
        origins.sourceLeftToKernel(),
        origins.fetched(),
        fromPeers,
        origins.waited() - fromPeers,
        sourceOperations,
        sinceLastRequest == null ? null : sinceLastRequest.toSeconds());
  }
}
