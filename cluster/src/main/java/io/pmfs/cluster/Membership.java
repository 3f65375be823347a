package io.pmfs.cluster;

import java.util.function.Consumer;

/** Who else serves the dataset. Safe for use by many threads. */
public interface Membership extends AutoCloseable {
  /** This node. */
  Member self();

  /** Who is known to be alive; this node alone until it has joined. */
  View view();

  /** Has the listener told of every later view, in order, by one thread at a time. */
  void onChange(Consumer<View> listener);

  /** Leaves, so that the others need not find out. Idempotent. */
  @Override
  void close();
}
