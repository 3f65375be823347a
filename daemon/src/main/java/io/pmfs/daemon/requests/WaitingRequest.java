package io.pmfs.daemon.requests;

import io.pmfs.fuse.AskedRequest;

/**
 * A request of the kernel that has no answer yet.
 *
 * @param asked the same as the bridge has it: equal as long as it waits, and to no other
 * @param nanos how long it has waited
 */
public record WaitingRequest(AskedRequest asked, Call call, long nanos) {}
