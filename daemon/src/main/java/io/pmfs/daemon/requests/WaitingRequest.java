package io.pmfs.daemon.requests;

import io.pmfs.fuse.protocol.AskedRequest;

/**
 * A request of the kernel that has no answer yet.
 *
 * @param asked the bridge's record of it; equal to itself while it waits, and to no other request
 * @param nanos how long it has waited
 */
public record WaitingRequest(AskedRequest asked, Call call, long nanos) {}
