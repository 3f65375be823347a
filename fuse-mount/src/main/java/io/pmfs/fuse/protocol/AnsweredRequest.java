package io.pmfs.fuse.protocol;

/**
 * A request from the kernel that was answered.
 *
 * @param asked what the request asked for
 * @param errno as the caller sees it; 0 for success
 * @param bytes of contents, of a listing or of a link's target in the answer; -1 if not applicable
 *     or unknown
 * @param nanos how long the request took
 */
public record AnsweredRequest(AskedRequest asked, int errno, long bytes, long nanos) {}
