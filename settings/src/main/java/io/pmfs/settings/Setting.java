package io.pmfs.settings;

import java.util.List;

/**
 * An option's text and its origin.
 *
 * @param values one text, or several for a list; empty when there is no value
 * @param origin such as {@code command line} or {@code /etc/pmfs/pmfs.toml:3}
 */
public record Setting(List<String> values, String origin) {
  public Setting {
    values = List.copyOf(values);
  }

  static Setting of(String value, String origin) {
    return new Setting(List.of(value), origin);
  }
}
