/**
 * The source of a dataset: the only place whose failure a reader sees. {@link
 * io.pmfs.source.BackingStore} is the contract; the others count its requests, pass them on, or
 * open it again.
 */
@NullMarked
package io.pmfs.source;

import org.jspecify.annotations.NullMarked;
