package io.pmfs.daemon.report;

import io.pmfs.stage.ReadOrigins;
import io.pmfs.stage.Stager;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.formats.CopyFormat;
import io.pmfs.tier.DaxVerdict;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierStatus;
import java.util.Locale;

/** One tier. */
public record TierReport(
    @Figure("kind and path") String name,
    @Figure("`pm` or `ssd`") String kind,
    @Figure("its directory, device or file") String path,
    @Figure(
            "`on`; `recovering`, which serves copies but accepts none, after an unclean stop until"
                + " it has been compared with the records; `full`, while its disk has no room"
                + " except what `--keep-free` reserves; `failed`, for the rest of the session")
        String state,
    @Figure("why it is not `on`; else empty") String reason,
    Dax dax,
    @Figure(value = "how many bytes copies may use", metric = "pmfs_tier_capacity_bytes")
        long capacityBytes,
    @Figure(value = "how many bytes copies use", metric = "pmfs_tier_used_bytes") long usedBytes,
    @Figure(value = "copies that the tier holds", metric = "pmfs_tier_copies") long copies,
    @Figure("how new copies are stored") String compression,
    @Figure("how many bytes the copies contain, uncompressed; -1 if that is not known")
        long contentBytes,
    @Figure(
            value =
                "reads that whole copies of the tier answered, except from data just" + " fetched",
            metric = "pmfs_tier_hits_total")
        long hits,
    @Figure(
            value =
                "reads that the tier could not answer, so that a later tier or the source answered",
            metric = "pmfs_tier_misses_total")
        long misses,
    @Figure(value = "bytes of the hits", metric = "pmfs_tier_read_bytes_total") long readBytes,
    @Figure(value = "copies removed to make room", metric = "pmfs_tier_evictions_total")
        long evictions,
    @Figure(value = "failed reads and writes of the tier", metric = "pmfs_tier_errors_total")
        long errors,
    @Figure(
            value = "copies dropped because they did not match their records",
            metric = "pmfs_tier_mismatches_total")
        long mismatches,
    @Figure(
            value =
                "how many more bytes copies can use before others are evicted: the smaller of what"
                    + " the capacity leaves and what the disk has free beyond `--keep-free`; 0 once"
                    + " the tier has failed or its disk is full",
            metric = "pmfs_tier_available_bytes")
        long availableBytes) {
  @Figure(value = "1 while the tier serves copies, 0 once it has failed", metric = "pmfs_tier_up")
  public boolean isUp() {
    return !state.equals("failed");
  }

  @Figure(value = "1 while the disk of the tier has no room, else 0", metric = "pmfs_tier_full")
  public boolean isFull() {
    return state.equals("full");
  }

  public static TierReport of(int index, ReadOrigins origins, Copies copies, Stager stager) {
    Tier tier = copies.tiers().get(index);
    CopyFormat format = copies.formats().get(index);
    TierStatus status = tier.status();
    DaxVerdict dax = status.dax();
    String reason = status.reason();
    return new TierReport(
        status.name(),
        status.kind(),
        status.path(),
        status.state().name().toLowerCase(Locale.ROOT),
        reason == null ? "" : reason,
        dax == null ? Dax.NONE : new Dax(dax.real(), dax.reason()),
        status.capacityBytes(),
        status.usedBytes(),
        status.copies(),
        format.compression().toString(),
        format.contentBytes(),
        origins.tiers().get(index).reads(),
        origins.misses(index),
        origins.tiers().get(index).bytes(),
        stager.evicted(tier),
        tier.errors(),
        copies.mismatches(tier),
        tier.availableBytes());
  }

  public record Dax(
      @Figure("whether it is persistent memory that can be mapped directly") boolean real,
      @Figure("how pmfs knows that") String reason) {
    /** For a tier that is not of kind pm. */
    public static final Dax NONE = new Dax(false, "not a pm tier");
  }
}
