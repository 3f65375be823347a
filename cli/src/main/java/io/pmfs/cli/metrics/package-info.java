/**
 * What a mount tells the world about itself: metrics in Prometheus text, the last hour, a web page,
 * and the server for all three. It knows nothing of commands and of the daemon; {@code io.pmfs.cli}
 * hands it what to read, in {@link io.pmfs.cli.metrics.Sources}.
 */
@org.jspecify.annotations.NullMarked
package io.pmfs.cli.metrics;
