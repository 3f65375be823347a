package io.pmfs.shards;

/** Why something in a shard is not served unchanged. */
enum Warning {
  BAD_NAME("names that lead outside, or that no file system can have"),
  BELOW_FILE("members below a name that is not a directory"),
  LOST_LINK("hard links to no earlier member"),
  UNSUPPORTED("volume labels and files that are split across volumes"),
  NO_END("shards without an end marker"),
  AFTER_END("shards with more after their end marker, which tar does not show either"),
  NOT_NESTED("members named .tar that are not tar files, shown as files");

  private final String description;

  Warning(String description) {
    this.description = description;
  }

  String description() {
    return description;
  }
}
