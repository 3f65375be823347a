/**
 * The bridge over libfuse 2, by jnr-fuse. No other package imports this one: {@link
 * io.pmfs.fuse.BridgeProvider BridgeProvider} finds it where it is on the class path.
 *
 * <p><b>Threads.</b> {@link JnrBridge} starts {@code fuse}, which calls libfuse's loop until the
 * session ends, and {@code probe}, which looks until the mount answers. The other threads are
 * libfuse's.
 *
 * <p><b>What may be forgotten.</b> {@link JnrOperations} keeps which directory a path leads to; it
 * may go at any time. libfuse itself keeps each name that the kernel knows.
 */
@NullMarked
package io.pmfs.fuse.jnr;

import org.jspecify.annotations.NullMarked;
