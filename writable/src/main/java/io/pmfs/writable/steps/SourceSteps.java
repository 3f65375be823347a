package io.pmfs.writable.steps;

import io.pmfs.posix.FsException;
import io.pmfs.writable.journal.Change;

/** Makes each kind of change at the source. Used by one thread. */
public record SourceSteps(
    ContentStep contents, NameStep names, RenameStep renames, Completion completion) {
  /** Makes a change, or completes one that was made before. */
  public Recording make(Change change) throws FsException {
    Recording rest = completion.complete(change);
    if (rest != null) {
      return rest;
    }
    if (change instanceof Change.Content content) {
      return contents.apply(content);
    }
    if (change instanceof Change.MakeDirectory directory) {
      return names.mkdir(directory);
    }
    if (change instanceof Change.MakeSymbolicLink link) {
      return names.symlink(link);
    }
    if (change instanceof Change.MakeNode node) {
      return names.mknod(node);
    }
    if (change instanceof Change.Link link) {
      return names.link(link);
    }
    if (change instanceof Change.Unlink unlink) {
      return names.unlink(unlink);
    }
    if (change instanceof Change.RemoveDirectory directory) {
      return names.rmdir(directory);
    }
    if (change instanceof Change.Rename rename) {
      return renames.apply(rename);
    }
    if (change instanceof Change.SetAttributes attributes) {
      return names.attributes(attributes);
    }
    return names.extended((Change.SetExtended) change);
  }
}
