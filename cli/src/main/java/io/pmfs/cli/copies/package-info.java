/** The commands about copies outside any mount: {@code cache} and {@code node-cache}. */
@NullMarked
package io.pmfs.cli.copies;

import org.jspecify.annotations.NullMarked;
