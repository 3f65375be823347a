/**
 * Asks peers for names, attributes and bytes. {@link io.pmfs.cluster.client.PeerClient} is the
 * contract; the manual is in io.pmfs.cluster.
 */
@NullMarked
package io.pmfs.cluster.client;

import org.jspecify.annotations.NullMarked;
