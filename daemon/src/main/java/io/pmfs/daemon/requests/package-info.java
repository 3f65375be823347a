/**
 * Single requests of the kernel: the access log, the log of slow requests, and profiles of their
 * lines. Independent of commands and of the daemon: {@code io.pmfs.daemon} passes the data.
 */
@org.jspecify.annotations.NullMarked
package io.pmfs.daemon.requests;
