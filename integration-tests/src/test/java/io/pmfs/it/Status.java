package io.pmfs.it;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;

/**
 * What {@code pmfs status --json} says. A field that is not there is an error and not a zero, so
 * that a renamed counter cannot satisfy a test that expects none.
 */
final class Status {
  private final JsonObject json;

  private Status(JsonObject json) {
    this.json = json;
  }

  static Status parse(String text) {
    return new Status(JsonParser.parseString(text).getAsJsonObject());
  }

  /**
   * A value by its path, as in {@code sourceOperations.total} or {@code tiers.0.copies}; null if
   * what it would be in is null.
   */
  private JsonElement at(String path) {
    JsonElement element = json;
    for (String name : path.split("\\.", -1)) {
      JsonElement child;
      if (element.isJsonNull()) {
        return element;
      }
      if (element instanceof JsonArray array) {
        int index = Integer.parseInt(name);
        child = index < array.size() ? array.get(index) : null;
      } else {
        child = element.getAsJsonObject().get(name);
      }
      if (child == null) {
        throw new AssertionError("status has no " + path + ": " + json);
      }
      element = child;
    }
    return element;
  }

  long number(String path) {
    return at(path).getAsLong();
  }

  /**
   * What the source was asked for. Its free space is not among it: a {@code df} of anybody on the
   * machine asks each mount for that.
   */
  long sourceRequests() {
    return number("sourceOperations.total") - number("sourceOperations.statfs");
  }

  /** A text; null reads as the empty one. */
  String text(String path) {
    JsonElement element = at(path);
    return element.isJsonNull() ? "" : element.getAsString();
  }

  boolean flag(String path) {
    return at(path).getAsBoolean();
  }

  int size(String path) {
    return at(path).getAsJsonArray().size();
  }

  @Override
  public String toString() {
    return json.toString();
  }
}
