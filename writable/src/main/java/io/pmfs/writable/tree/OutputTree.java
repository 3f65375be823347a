package io.pmfs.writable.tree;

import io.pmfs.writable.journal.State;

/**
 * Names, nodes and attributes as the mount shows them: the source, with the changes over it that
 * the source does not have yet.
 *
 * @param source what the source has
 * @param nodes what a name or a number leads to
 * @param names makes and removes names
 * @param renames gives nodes other names
 * @param extended the extended attributes of nodes
 */
public record OutputTree(
    SourceTree source, Nodes nodes, Names names, Renames renames, Extended extended) {
  /** The tree over a source, with the contents of files in use. */
  public static OutputTree of(
      State state, SourceTree source, Extended extended, WrittenFiles written) {
    Nodes nodes = new Nodes(state, source, written);
    Names names = new Names(state, nodes, source, written);
    return new OutputTree(source, nodes, names, new Renames(state, names, nodes, source), extended);
  }
}
