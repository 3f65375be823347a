package io.pmfs.writable.data;

import io.pmfs.writable.journal.State;
import io.pmfs.writable.places.DataPlaces;
import io.pmfs.writable.tree.OutputTree;

/**
 * The parts that handle the contents of files.
 *
 * @param files the files in use
 * @param places of their data files
 * @param room frees room for data files
 * @param contents prepares and applies changes of content
 * @param handles open handles
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
