package io.pmfs.writable.steps;

import io.pmfs.posix.FsException;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.steps.Step.Recording;

/** Makes each kind of change at the source. Used by one thread. */
public record SourceSteps(
    ContentStep contents, NameStep names, RenameStep renames, Completion completion)
    implements Change.Cases<Recording> {
  /** Makes a change, or completes one that was made before. */
  public Recording make(Change change) throws FsException {
    Recording rest = completion.complete(change);
    return rest == null ? change.match(this) : rest;
  }

  @Override
  public Recording content(Change.Content change) throws FsException {
    return contents.apply(change);
  }

  @Override
  public Recording makeDirectory(Change.MakeDirectory change) throws FsException {
    return names.mkdir(change);
  }

  @Override
  public Recording makeSymbolicLink(Change.MakeSymbolicLink change) throws FsException {
    return names.symlink(change);
  }

  @Override
  public Recording makeNode(Change.MakeNode change) throws FsException {
    return names.mknod(change);
  }

  @Override
  public Recording link(Change.Link change) throws FsException {
    return names.link(change);
  }

  @Override
  public Recording unlink(Change.Unlink change) throws FsException {
    return names.unlink(change);
  }

  @Override
  public Recording removeDirectory(Change.RemoveDirectory change) throws FsException {
    return names.rmdir(change);
  }

  @Override
  public Recording rename(Change.Rename change) throws FsException {
    return renames.apply(change);
  }

  @Override
  public Recording setAttributes(Change.SetAttributes change) throws FsException {
    return names.attributes(change);
  }

  @Override
  public Recording setExtended(Change.SetExtended change) throws FsException {
    return names.extended(change);
  }
}
