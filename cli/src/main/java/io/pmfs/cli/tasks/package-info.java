/**
 * The commands that start a task of a mount and follow it to its end, and what they show meanwhile.
 */
@NullMarked
package io.pmfs.cli.tasks;

import org.jspecify.annotations.NullMarked;
