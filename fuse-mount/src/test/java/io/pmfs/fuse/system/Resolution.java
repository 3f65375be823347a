package io.pmfs.fuse.system;

/** The two ways to open a path; tests use both on any kernel. */
public enum Resolution {
  OPENAT2,
  BY_COMPONENT;

  public Beneath beneath() {
    return new Beneath(this == OPENAT2);
  }
}
