package io.pmfs.packing;

/** A file could not be read to its end after the shard held a part of it. */
final class BrokenOffException extends Exception {
  private final transient PlannedFile file;
  private final transient Unreadable unreadable;

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
