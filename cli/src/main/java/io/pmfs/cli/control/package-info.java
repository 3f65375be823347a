/**
 * The other end of the control socket: asks a daemon, follows its requests, and turns what a person
 * names into one mount and paths of its dataset.
 */
@NullMarked
package io.pmfs.cli.control;

import org.jspecify.annotations.NullMarked;
