package io.pmfs.metadata;

import java.time.Instant;

/**
 * That a directory was imported whole.
 *
 * @param session the session that imported it or found it unchanged
 * @param modificationTime the source directory's when its names were read; {@link Instant#EPOCH} if
 *     it was too fresh to tell a later change from it
 */
public record Listing(int session, Instant modificationTime) {}
