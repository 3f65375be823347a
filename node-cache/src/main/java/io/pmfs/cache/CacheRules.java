package io.pmfs.cache;

import java.time.Duration;

/**
 * Limits of the copies.
 *
 * @param evictAfter how long a copy must be unused before it is evicted for another one, unless its
 *     user exceeds the fair share
 */
record CacheRules(Space capacity, Duration evictAfter, CacheService.Limits limits) {}
