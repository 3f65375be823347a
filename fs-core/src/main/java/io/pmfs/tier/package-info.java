/**
 * Places that hold copies of files, and the backing store they are copies of. A tier may forget
 * anything at any time; only the backing store can fail a read.
 */
@NullMarked
package io.pmfs.tier;

import org.jspecify.annotations.NullMarked;
