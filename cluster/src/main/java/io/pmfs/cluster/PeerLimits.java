package io.pmfs.cluster;

import java.time.Duration;

/**
 * What a server of peers gives at most.
 *
 * @param nameWorkers threads for names and attributes, which data never keeps waiting; requests
 *     that find none are answered 503
 * @param dataWorkers threads for content
 * @param queued requests that wait for one of these; more are answered 503
 * @param slowReaders threads of each kind that wait for a peer to take its answer: such a one
 *     leaves its place to another; each may have half a MiB of the answer in memory
 * @param connections of all peers together
 * @param connectionsPerAddress from one address
 * @param memoryMiB what content that is read into memory may take, beside 2 MiB for each worker
 * @param request how long a request may take to come, from its first byte to the last of its head,
 *     and again to the last of its body
 * @param idle how long a connection may stay open without a request
 * @param processing after which wait a peer is told that its request is in work, and again
 * @param writeStall how long a peer may take for the next 256 KiB of its answer
 */
public record PeerLimits(
    int nameWorkers,
    int dataWorkers,
    int queued,
    int slowReaders,
    int connections,
    int connectionsPerAddress,
    int memoryMiB,
    Duration request,
    Duration idle,
    Duration processing,
    Duration writeStall) {
  /** For a node of a job with some hundred others, each with a few connections. */
  public static final PeerLimits DEFAULTS =
      new PeerLimits(
          256,
          64,
          512,
          256,
          4096,
          256,
          64,
          Duration.ofSeconds(5),
          Duration.ofSeconds(60),
          Duration.ofMillis(500),
          Duration.ofSeconds(4));

  public PeerLimits {
    if (nameWorkers < 1 || dataWorkers < 1 || queued < 1 || memoryMiB < 16) {
      throw new IllegalArgumentException("there must be workers, a queue and 16 MiB of memory");
    }
    if (connections < 1 || connectionsPerAddress < 1) {
      throw new IllegalArgumentException("there must be connections");
    }
  }
}
