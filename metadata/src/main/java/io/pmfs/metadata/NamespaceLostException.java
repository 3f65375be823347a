package io.pmfs.metadata;

import io.pmfs.table.StateException;

/**
 * The state failed during an operation and lost data that it was based on: the caller must start
 * the operation again. {@link Namespace#losses} has risen.
 */
public final class NamespaceLostException extends StateException {
  NamespaceLostException(String what) {
    super(what + ": the state failed meanwhile", null);
  }
}
