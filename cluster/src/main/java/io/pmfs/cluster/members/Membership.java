package io.pmfs.cluster.members;

import java.util.List;
import java.util.function.Consumer;

/** The nodes that serve the dataset. Safe for use by many threads. */
public interface Membership extends AutoCloseable {
  /** The members that are known to be alive; this node alone until it has joined. */
  View view();

  /** Calls the listener with every later view, in order, from one thread at a time. */
  void onChange(Consumer<View> listener);

  /**
   * The nodes that said goodbye, as they were then: their absence is wanted. Those that came back
   * since may be among them.
   */
  List<Member> farewells();

  /** Says goodbye, so that nobody misses this node when it has left; waits 2 s at most. */
  void sayGoodbye();

  /** Leaves the cluster, so that the others need not detect the absence. Idempotent. */
  @Override
  void close();
}
