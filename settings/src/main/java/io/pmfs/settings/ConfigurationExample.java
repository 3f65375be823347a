package io.pmfs.settings;

/** A configuration file that describes every key; all keys are commented out. */
public final class ConfigurationExample {
  private static final int WIDTH = 98;

  private ConfigurationExample() {}

  public static String text() {
    StringBuilder text = new StringBuilder();
    comment(
        text,
        "Options of pmfs mount. The command line and the environment override this file. It lists"
            + " every key, commented out, with its default, or with an example if there is none."
            + " Sizes are 200G, 64MiB (powers of 1024), 200GB (powers of 1000) or 10% of a disk;"
            + " times are 500ms, 30s, 2m. Paths are absolute.");
    comment(text, "pmfs config shows the values in effect and their origins.");
    text.append("\n");
    for (MountOption<?> option : MountOption.options()) {
      if (option.isForFiles()) {
        add(text, option);
      }
    }
    comment(
        text,
        "Options of one mount, used by pmfs mount /mnt/dataset. All keys above may be set"
            + " here, too.");
    text.append("#[mount.\"/mnt/dataset\"]\n");
    text.append("#source = ").append(value(MountOption.SOURCE)).append('\n');
    return text.toString();
  }

  private static void add(StringBuilder text, MountOption<?> option) {
    String description = option.description();
    comment(text, Character.toUpperCase(description.charAt(0)) + description.substring(1) + ".");
    text.append('#').append(option.key()).append(" = ").append(value(option)).append("\n\n");
  }

  private static String value(MountOption<?> option) {
    return switch (option.kind()) {
      case FLAG -> option.example();
      case LIST -> "[\"" + option.example() + "\"]";
      default -> '"' + option.example() + '"';
    };
  }

  /** Adds a comment, wrapped between words. */
  private static void comment(StringBuilder text, String sentence) {
    int column = 0;
    for (String word : sentence.split(" ", -1)) {
      boolean fits = column > 0 && column + 1 + word.length() <= WIDTH;
      if (!fits) {
        text.append(column > 0 ? "\n#" : "#");
        column = 1;
      }
      text.append(' ').append(word);
      column += 1 + word.length();
    }
    text.append('\n');
  }
}
