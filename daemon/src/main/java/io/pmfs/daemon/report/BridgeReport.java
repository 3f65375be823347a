package io.pmfs.daemon.report;

/** The bridge to the kernel, and which reads the kernel answers itself. */
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
