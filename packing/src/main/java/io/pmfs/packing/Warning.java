package io.pmfs.packing;

/** Why something in a shard is not served as it is there. */
enum Warning {
  BAD_NAME("names that lead outside, or that no file system could have"),
  BELOW_FILE("members below a name that is no directory"),
  LOST_LINK("hard links to no earlier member"),
  UNSUPPORTED("volume labels and parts of files on other volumes"),
  NO_END("shards without the blocks that mark the end"),
  NOT_NESTED("members named .tar that are none, shown as files");

  private final String description;

  Warning(String description) {
    this.description = description;
  }

  String description() {
    return description;
  }
}
