/**
 * The process of a daemon: its log, its version, its supervisor, the time in which it must be
 * ready.
 */
@NullMarked
package io.pmfs.daemon.process;

import org.jspecify.annotations.NullMarked;
