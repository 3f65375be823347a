/**
 * Tiers, which hold copies of files, and the backing store they are copied from. A tier may forget
 * anything at any time; only the backing store can fail a read.
 */
@NullMarked
package io.pmfs.tier;

import org.jspecify.annotations.NullMarked;
