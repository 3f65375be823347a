package io.pmfs.tier;

/**
 * Whether memory or a file system gives direct access to persistent memory.
 *
 * @param reason the evidence, for an administrator
 */
public record DaxVerdict(boolean real, String reason) {}
