package io.pmfs.it;

/** The suite on the tree itself. */
final class PlainDirectoryPosixTest extends PosixReadSuite {
  @Override
  String lookAt(PosixTree tree) {
    return tree.root();
  }

  @Override
  void lookAway() {}
}
