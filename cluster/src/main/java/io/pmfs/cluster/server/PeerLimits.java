package io.pmfs.cluster.server;

import java.time.Duration;

/**
 * Limits of a {@link PeerServer}.
 *
 * @param nameWorkers threads for names and attributes, separate from those for data; a request that
 *     finds none free is answered with 503
 * @param dataWorkers threads for content
 * @param queued requests that may wait for one of these; further ones are answered with 503
 * @param slowReaders threads of each kind that may wait for a peer to take its answer: a waiting
 *     thread leaves its place to another; each may hold half a MiB of its answer in memory
 * @param connections from all peers together
 * @param connectionsPerAddress connections from one address
 * @param memoryMiB the memory for content that is read before it is sent, in addition to 2 MiB for
 *     each worker
 * @param request how long a request's head may take to arrive, from its first byte to its last, and
 *     how long its body may take after that
 * @param idle how long a connection may stay open without a request
 * @param processing after how long, and how often after that, a peer learns that its request is
 *     being processed
 * @param writeStall how long a peer may take to receive the next 256 KiB of its answer
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
  /** For a node in a job of some hundred nodes, each with a few connections. */
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
      throw new IllegalArgumentException(
          "peer limits: needs workers of each kind, a queue and at least 16 MiB of memory");
    }
    if (connections < 1 || connectionsPerAddress < 1) {
      throw new IllegalArgumentException(
          "peer limits: needs at least one connection, also per address");
    }
  }
}
