/** The commands that mount, replace and unmount. */
@NullMarked
package io.pmfs.cli.mount;

import org.jspecify.annotations.NullMarked;
