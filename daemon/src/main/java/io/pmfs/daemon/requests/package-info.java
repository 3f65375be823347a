/**
 * What is known of the kernel's requests one by one: the access log, the log of slow ones, and what
 * a profile makes of their lines. It knows nothing of commands and of the daemon; {@code
 * io.pmfs.daemon} hands it what it needs.
 */
@org.jspecify.annotations.NullMarked
package io.pmfs.daemon.requests;
