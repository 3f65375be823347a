package io.pmfs.metadata;

import io.pmfs.table.StateException;

/**
 * The data that an operation was based on was lost, because the state failed during the operation:
 * the caller must start the operation again. {@link Namespace#losses} has risen.
 */
public final class NamespaceLostException extends StateException {
  private static final long serialVersionUID = 1L;

  NamespaceLostException(String what) {
    super(what + ": the state failed meanwhile", null);
  }
}
