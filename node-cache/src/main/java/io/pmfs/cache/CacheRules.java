package io.pmfs.cache;

import java.time.Duration;

/**
 * Which copies are kept.
 *
 * @param evictAfter how long a copy must not have been asked for before another one may take its
 *     room, unless its user has more than a share
 */
record CacheRules(Space capacity, Duration evictAfter, CacheService.Limits limits) {}
