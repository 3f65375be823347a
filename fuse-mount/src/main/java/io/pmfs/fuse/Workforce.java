package io.pmfs.fuse;

import io.pmfs.fuse.protocol.AnswerBuffers;
import io.pmfs.fuse.protocol.RequestLatencies;

/**
 * How many workers answer the requests of a session, and what they share.
 *
 * @param count how many are started; so many requests may be in progress at once, which also limits
 *     how many may wait for the source
 * @param most how many there may be while some wait
 * @param latencies records how long each request took
 * @param buffers their memory
 */
record Workforce(int count, int most, RequestLatencies latencies, AnswerBuffers buffers) {
  Workforce(int count, int most, int maxReadBytes) {
    this(count, most, new RequestLatencies(), new AnswerBuffers(maxReadBytes));
  }
}
