package io.pmfs.fuse;

/**
 * A request of the kernel that was answered.
 *
 * @param asked what it asked for
 * @param errno as the caller sees it; 0 for success
 * @param bytes of contents, of a listing or of a link's target in the answer; -1 if the operation
 *     has none of these or it is not known
 * @param nanos how long it took
 */
public record AnsweredRequest(AskedRequest asked, int errno, long bytes, long nanos) {}
