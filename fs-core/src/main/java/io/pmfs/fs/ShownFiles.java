package io.pmfs.fs;

import io.pmfs.stage.copies.InodeBytes;

/**
 * What one kernel was shown of files that are of another version than described before. A kernel
 * caches attributes for long: a file of a later generation than it was shown is not read, because
 * the new content would be truncated to the old size. Thread-safe.
 */
public final class ShownFiles {
  private final Contradictions contradictions;

  /** The generation of the attributes. */
  private final InodeBytes shown;

  /** The generation of the pages. */
  private final InodeBytes opened = new InodeBytes();

  private volatile boolean replacesInodes;

  ShownFiles(Contradictions contradictions, InodeBytes shown) {
    this.contradictions = contradictions;
    this.shown = shown;
    this.replacesInodes = contradictions.replacesInodes();
  }

  /** Records, also for the session's next process, that {@link #replacesInodes}. */
  public void replaceInodes() {
    contradictions.replaceInodes();
    replacesInodes = true;
  }

  /** Whether the kernel has another inode for each generation, which begins without pages. */
  public boolean replacesInodes() {
    return replacesInodes;
  }

  /** Whether a file was found to be of another version than the attributes shown last. */
  public boolean isStale(long number) {
    byte generation = contradictions.generation(number);
    return generation != 0 && shown.get(number) != generation;
  }

  /** The generation of the attributes that are read next, or of an earlier version. */
  public byte generation(long number) {
    return contradictions.generation(number);
  }

  /** Records attributes that the kernel gets. Their generation was asked for before them. */
  public void show(long number, byte generation) {
    if (shown.get(number) != generation) {
      shown.set(number, generation);
      contradictions.shown(number, generation);
    }
  }

  /** Whether the kernel may have pages of an earlier generation. */
  boolean hasOldPages(long number) {
    return opened.get(number) != contradictions.generation(number);
  }

  /** Whether the kernel may keep its pages of a file that is opened; false once a generation. */
  boolean keepsPages(long number) {
    byte before = opened.get(number);
    byte generation = contradictions.generation(number);
    return before == generation || !opened.compareAndSet(number, before, generation);
  }
}
