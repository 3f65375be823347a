/**
 * The control socket: HTTP with JSON for the commands of this machine, and the requests of other
 * nodes to this one. Its other end is io.pmfs.cli.control.
 */
@NullMarked
package io.pmfs.daemon.control;

import org.jspecify.annotations.NullMarked;
