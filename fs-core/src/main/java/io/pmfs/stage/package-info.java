/**
 * Copies: which tier holds a copy of which file, and how copies are made without delaying readers.
 */
@NullMarked
package io.pmfs.stage;

import org.jspecify.annotations.NullMarked;
