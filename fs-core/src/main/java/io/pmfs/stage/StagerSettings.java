package io.pmfs.stage;

import io.pmfs.stage.formats.Blocks;

/**
 * The resources that staging may use.
 *
 * @param fetchThreads how many files are read from the source at once in the background
 * @param bufferBytes direct memory for blocks that were read and are not in a tier yet
 * @param queueLength how many files may wait to be fetched
 */
public record StagerSettings(int fetchThreads, int bufferBytes, int queueLength) {
  /**
   * Threads that compress copies and write them to local tiers. They need processors and the page
   * cache, not a network.
   */
  static final int STORE_THREADS = Math.max(2, Runtime.getRuntime().availableProcessors());

  public StagerSettings {
    if (fetchThreads < 1 || fetchThreads > 256) {
      throw new IllegalArgumentException("fetch-threads must be from 1 to 256");
    }
    if (bufferBytes < 8 * Blocks.SIZE) {
      throw new IllegalArgumentException("buffer-memory must be at least 8 MiB");
    }
    if (queueLength < 1) {
      throw new IllegalArgumentException("the queue must hold at least one file");
    }
  }
}
