package io.pmfs.it;

/** Where a suite looks at a tree. */
interface PosixView {
  PosixTree tree();

  /** The directory in which the tree is seen: its own root, or a mount of it. */
  String view();

  default String at(String relative) {
    return view() + "/" + relative;
  }
}
