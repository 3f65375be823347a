package io.pmfs.cli.doctor;

/**
 * One line of {@code pmfs doctor}.
 *
 * @param grade whether it is fine, worth fixing, leaves the mount with a part of its use, or
 *     prevents mounting
 * @param subject what was checked
 * @param text what was found and what to do about it
 */
record Finding(Grade grade, String subject, String text) {
  /** FAIL means that this machine cannot mount, or that the checked mount cannot work. */
  enum Grade {
    OK,
    WARN,
    PART,
    FAIL
  }
}
