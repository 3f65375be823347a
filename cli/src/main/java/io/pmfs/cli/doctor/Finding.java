package io.pmfs.cli.doctor;

/**
 * One line of {@code pmfs doctor}.
 *
 * @param grade whether it helps, matters or prevents mounting
 * @param subject what was looked at
 * @param text what was found and what to do about it
 */
record Finding(Grade grade, String subject, String text) {
  /** FAIL means that nothing can be mounted on this machine. */
  enum Grade {
    OK,
    WARN,
    FAIL
  }
}
