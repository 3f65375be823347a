package io.pmfs.writable.tree;

import io.pmfs.writable.journal.State;

/**
 * The parts that handle names and attributes.
 *
 * @param source reads the source
 * @param nodes looks up nodes
 * @param names creates and removes names
 * @param renames renames nodes
 * @param extended the extended attributes of nodes
 */
public record OutputTree(
    SourceTree source, Nodes nodes, Names names, Renames renames, Extended extended) {
  public static OutputTree of(
      State state, SourceTree source, Extended extended, WrittenFiles written) {
    Nodes nodes = new Nodes(state, source, written);
    Names names = new Names(state, nodes, source, written);
    return new OutputTree(source, nodes, names, new Renames(state, names, nodes, source), extended);
  }
}
