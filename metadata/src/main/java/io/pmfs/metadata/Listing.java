package io.pmfs.metadata;

import java.time.Instant;

/**
 * Records that a directory was imported completely.
 *
 * @param session the session that imported it or found it unchanged
 * @param modificationTime of the source directory when its names were read; {@link Instant#EPOCH}
 *     if the time was too recent to distinguish a later change
 */
public record Listing(int session, Instant modificationTime) {}
