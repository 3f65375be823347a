package io.pmfs.cli.doctor;

/**
 * One line of {@code pmfs doctor}.
 *
 * @param grade the severity
 * @param subject what was checked
 * @param text what was found and what to do about it
 */
record Finding(Grade grade, String subject, String text) {
  /** FAIL: this machine cannot mount, or the mount cannot work. PART: the mount works in part. */
  enum Grade {
    OK,
    WARN,
    PART,
    FAIL
  }
}
