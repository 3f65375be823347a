package io.pmfs.metadata;

/**
 * What an operation was based on is not known any more, because the state failed in the middle of
 * it: the operation is to be begun again. {@link Namespace#losses} has risen.
 */
public final class NamespaceLostException extends NamespaceException {
  private static final long serialVersionUID = 1L;

  NamespaceLostException(String what) {
    super(what + ": the state failed meanwhile", null);
  }
}
