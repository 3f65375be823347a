/**
 * What a mount tells the world about itself: metrics in Prometheus text, the last hour, a web page,
 * and the server for all three. It knows nothing of commands and of the daemon; {@code
 * io.pmfs.daemon} hands it what to read, as a {@link io.pmfs.daemon.metrics.Snapshot}.
 */
@org.jspecify.annotations.NullMarked
package io.pmfs.daemon.metrics;
