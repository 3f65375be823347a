package io.pmfs.cluster.members;

import java.util.List;
import java.util.function.Consumer;

/** The nodes that serve the dataset. Thread-safe. */
public interface Membership extends AutoCloseable {
  /** The members that are known to be alive; this node alone until it has joined. */
  View view();

  /** Calls the listener with every later view, in order, from one thread at a time. */
  void onChange(Consumer<View> listener);

  /**
   * The nodes that have said goodbye, as they were then: they are not missing. Nodes that have come
   * back since may be among them.
   */
  List<Member> farewells();

  /** Says goodbye, so that this node is not reported as missing later; waits at most 2 s. */
  void sayGoodbye();

  /** Leaves the cluster, so that the others need not detect the absence. Idempotent. */
  @Override
  void close();
}
