package io.pmfs.settings;

import io.pmfs.machine.ValueParser;
import io.pmfs.places.GivenPath;
import io.pmfs.places.Surroundings;
import io.pmfs.settings.MountOption.Group;
import io.pmfs.settings.MountOption.Kind;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The builder of a {@link MountOption}. By default, an option is in the group of operation, may be
 * set in a file, names no path and has neither a default nor an example.
 *
 * <p>Parsers throw IllegalArgumentException with a message for the user.
 */
final class Declaration<T> {
  final Kind kind;
  final String key;
  final String placeholder;

  /** Parses the text of the option, or all texts of a list. */
  final BiFunction<List<String>, Surroundings, T> parser;

  Function<String, List<String>> paths = text -> List.of();
  @Nullable String formerKey;
  @Nullable String defaultText;
  String example = "";
  Group group = Group.OPERATION;
  List<String> choices = List.of();
  boolean isForFiles = true;

  private Declaration(
      Kind kind, String key, String placeholder, BiFunction<List<String>, Surroundings, T> parser) {
    this.kind = kind;
    this.key = key;
    this.placeholder = placeholder;
    this.parser = parser;
  }

  /** The positional argument for the dataset; its key is valid only in sections of files. */
  static Declaration<Path> argument(String key, String placeholder) {
    return new Declaration<>(
            Kind.ARGUMENT,
            key,
            placeholder,
            (texts, world) -> GivenPath.ofSource(texts.get(0), world))
        .naming(List::of);
  }

  /** A flag, false by default. */
  static Declaration<Boolean> flag(String key) {
    return new Declaration<>(Kind.FLAG, key, "", (texts, world) -> ValueParser.flag(texts.get(0)))
        .byDefault("false");
  }

  static <T> Declaration<T> value(String key, String placeholder, Function<String, T> parser) {
    return new Declaration<>(
        Kind.VALUE, key, placeholder, (texts, world) -> parser.apply(texts.get(0)));
  }

  /** One of several words. */
  static Declaration<String> choice(String key, String placeholder, String... words) {
    return value(key, placeholder, ValueParser.oneOf(List.of(words))).offering(words);
  }

  /** The path of a file or a directory. */
  static Declaration<Path> path(String key, String placeholder) {
    return ofFiles(key, placeholder, GivenPath::of);
  }

  /** A value read from one or more files, which the text names. */
  static <T> Declaration<T> ofFiles(
      String key, String placeholder, BiFunction<String, Surroundings, T> parser) {
    return new Declaration<>(
            Kind.VALUE, key, placeholder, (texts, world) -> parser.apply(texts.get(0), world))
        .naming(List::of);
  }

  /** Any number of values. */
  static <E> Declaration<List<E>> list(
      String key, String placeholder, BiFunction<String, Surroundings, E> parser) {
    return new Declaration<>(
        Kind.LIST,
        key,
        placeholder,
        (texts, world) -> {
          List<E> values = new ArrayList<>();
          texts.forEach(text -> values.add(parser.apply(text, world)));
          return List.copyOf(values);
        });
  }

  /**
   * @param found returns the paths in a text, as written
   */
  Declaration<T> naming(Function<String, List<String>> found) {
    paths = found;
    return this;
  }

  /** Words for completion: all valid words, or the usual ones. */
  Declaration<T> offering(String... words) {
    choices = List.of(words);
    return this;
  }

  /** An older key, which is still understood. */
  Declaration<T> formerly(String older) {
    formerKey = older;
    return this;
  }

  Declaration<T> byDefault(String text) {
    defaultText = text;
    return this;
  }

  /** An example value for the example file, for an option without a default. */
  Declaration<T> suchAs(String text) {
    example = text;
    return this;
  }

  Declaration<T> in(Group place) {
    group = place;
    return this;
  }

  /** For options that the launcher, which does not read files, needs before the JVM starts. */
  Declaration<T> notInFiles() {
    isForFiles = false;
    return this;
  }

  /** Creates the option; the description starts in lower case and ends without a full stop. */
  MountOption<T> means(String description) {
    return new MountOption<>(this, description);
  }
}
