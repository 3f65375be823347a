package io.pmfs.pack;

/** Reading a file failed after a part of it was written to the shard. */
final class BrokenOffException extends Exception {
  private final PlannedFile file;
  private final Unreadable unreadable;

  BrokenOffException(PlannedFile file, Unreadable unreadable) {
    super(unreadable.path() + ": " + unreadable.reason());
    this.file = file;
    this.unreadable = unreadable;
  }

  PlannedFile file() {
    return file;
  }

  Unreadable unreadable() {
    return unreadable;
  }
}
