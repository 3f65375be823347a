/**
 * The client of the control socket: asks a daemon, follows its requests, and resolves the paths
 * that a user gives to one mount and paths of its dataset.
 */
@NullMarked
package io.pmfs.cli.control;

import org.jspecify.annotations.NullMarked;
