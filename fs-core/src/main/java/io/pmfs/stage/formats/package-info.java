/**
 * How a copy is stored: raw or compressed, alone or in a bundle, and how its blocks are written,
 * checked and read. Knows one copy at a time, and neither names nor tiers' order.
 */
@NullMarked
package io.pmfs.stage.formats;

import org.jspecify.annotations.NullMarked;
