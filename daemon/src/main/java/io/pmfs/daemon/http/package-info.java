/** The HTTP server of the control socket and the metrics: threads, limits and answers. */
@org.jspecify.annotations.NullMarked
package io.pmfs.daemon.http;
