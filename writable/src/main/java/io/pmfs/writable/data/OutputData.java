package io.pmfs.writable.data;

import io.pmfs.writable.journal.State;
import io.pmfs.writable.places.DataPlaces;
import io.pmfs.writable.tree.OutputTree;

/**
 * The contents of files, and what programs do with them.
 *
 * @param files the files in use
 * @param places where their data files lie
 * @param room for more data files
 * @param contents where a content goes on when it is changed
 * @param handles what programs have open
 * @param requests reads, writes and changes of attributes
 * @param open opening and closing
 */
public record OutputData(
    OutputFiles files,
    DataPlaces places,
    Room room,
    Contents contents,
    Handles handles,
    FileData requests,
    OpenFiles open) {
  /** The contents of the files of a tree. */
  public static OutputData of(State state, OutputTree tree, OutputFiles files, DataPlaces places) {
    Room room = new Room(state, places, files);
    Contents contents = new Contents(state, files, places, room);
    Rights rights = new Rights(state, tree.nodes(), files);
    FileData requests = new FileData(state, tree, files, contents, rights);
    Handles handles = new Handles(state, tree.nodes(), files);
    OpenFiles open = new OpenFiles(state, tree, files, contents, requests, handles);
    return new OutputData(files, places, room, contents, handles, requests, open);
  }
}
