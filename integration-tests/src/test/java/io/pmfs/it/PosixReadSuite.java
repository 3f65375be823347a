package io.pmfs.it;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;

/**
 * Everything that POSIX says of reading a tree, asked of a view of one. The plain directory keeps
 * the suite honest: what it expects of a mount a local file system does.
 */
@TestInstance(Lifecycle.PER_CLASS)
abstract class PosixReadSuite implements PosixDataTests, PosixNameTests, PosixAttributeTests {
  private final Scratch scratch = new Scratch();
  private PosixTree tree;
  private String view;

  @BeforeAll
  void buildTreeAndLookAtIt() {
    tree = PosixTree.create(scratch.directory("tree"));
    view = lookAt(tree);
  }

  /** Makes the tree visible; answers where. */
  abstract String lookAt(PosixTree tree);

  /** Ends what {@link #lookAt} began. */
  abstract void lookAway();

  @Override
  public final PosixTree tree() {
    return tree;
  }

  @Override
  public final String view() {
    return view;
  }

  @AfterAll
  void removeTree() {
    try {
      lookAway();
    } finally {
      scratch.close();
    }
  }
}
