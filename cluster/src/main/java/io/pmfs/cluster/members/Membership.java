package io.pmfs.cluster.members;

import java.util.function.Consumer;

/** The nodes that serve the dataset. Safe for use by many threads. */
public interface Membership extends AutoCloseable {
  /** The members that are known to be alive; this node alone until it has joined. */
  View view();

  /** Calls the listener with every later view, in order, from one thread at a time. */
  void onChange(Consumer<View> listener);

  /** Leaves the cluster, so that the others need not detect the absence. Idempotent. */
  @Override
  void close();
}
