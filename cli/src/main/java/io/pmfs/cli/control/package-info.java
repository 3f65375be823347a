/**
 * The client of the control socket: sends requests to a daemon, streams its request log, and
 * resolves a user's paths to a mount and paths in its dataset.
 */
@NullMarked
package io.pmfs.cli.control;

import org.jspecify.annotations.NullMarked;
