package io.pmfs.daemon.report;

/** How the kernel's requests arrive, and which it answers itself. */
public record BridgeReport(
    @Figure(
            "`kernel` or `jnr`; `none` after a crash loop, when the source itself is mounted there"
                + " and the report has no other figures")
        String bridge,
    @Figure("why this bridge") String bridgeReason,
    @Figure("`auto` until it is chosen, `page-cache` or `passthrough`") String readMode,
    @Figure("why this mode") String readModeReason) {
  static final String NONE = "none";
}
