/**
 * Copying up: which tier holds a copy of which file, and how copies are made without keeping
 * readers waiting.
 */
@NullMarked
package io.pmfs.stage;

import org.jspecify.annotations.NullMarked;
