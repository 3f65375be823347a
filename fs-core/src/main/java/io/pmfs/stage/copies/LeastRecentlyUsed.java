package io.pmfs.stage.copies;

import io.pmfs.metadata.Namespace;
import io.pmfs.tier.Tier;
import java.util.random.RandomGenerator;

/**
 * Evicts the least recently read of a few random copies. Sampling needs one byte per file, an exact
 * order a list of all; with 16 samples the victim is in the oldest fifth of the copies with a
 * probability of 97 %. Pinned copies are never chosen.
 *
 * <p>Ages are in generations: a counter that advances with every {@value #TOUCHES_PER_GENERATION}
 * reads and wraps. So a copy not read for 255 generations looks young once, which costs one
 * needless miss.
 */
public final class LeastRecentlyUsed implements EvictionPolicy {
  private static final int SAMPLES = 16;
  private static final int TOUCHES_PER_GENERATION = 1024;

  private final RandomGenerator random;
  private final InodeBytes lastTouched = new InodeBytes();
  private volatile int touches;

  public LeastRecentlyUsed(RandomGenerator random) {
    this.random = random;
  }

  @Override
  @SuppressWarnings(
      "NonAtomicVolatileUpdate") // A lost update makes a generation longer by one read.
  public void touched(long number) {
    touches++;
    lastTouched.set(number, generation());
  }

  private byte generation() {
    return (byte) Integer.divideUnsigned(touches, TOUCHES_PER_GENERATION);
  }

  @Override
  public long victim(Tier tier, Namespace namespace) {
    Oldest oldest = new Oldest();
    for (int sample = 0; sample < SAMPLES; sample++) {
      long from = random.nextLong(Namespace.ROOT, namespace.lastNumber() + 1);
      if (!oldest.offerNext(from, tier, namespace)) {
        oldest.offerNext(Namespace.ROOT, tier, namespace);
      }
    }
    return oldest.number;
  }

  /** The oldest of the copies offered so far. */
  private final class Oldest {
    /** How many records to examine per sample: a tier's copies may be rare among all. */
    private static final int LOOK_AHEAD = 64;

    private long number;
    private int age = -1;
    private int looked;
    private boolean found;

    boolean offerNext(long from, Tier tier, Namespace namespace) {
      looked = 0;
      found = false;
      namespace.listCopies(
          from,
          (candidate, copy) -> {
            if (copy.tier().equals(tier.name()) && !copy.pinned()) {
              found = true;
              int candidateAge = (generation() - lastTouched.get(candidate)) & 0xff;
              if (candidateAge > age) {
                age = candidateAge;
                number = candidate;
              }
            }
            return !found && ++looked < LOOK_AHEAD;
          });
      return found;
    }
  }
}
