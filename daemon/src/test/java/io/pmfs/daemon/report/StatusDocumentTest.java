package io.pmfs.daemon.report;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** The table of docs/status.md matches the figures: none disappears or is undocumented. */
final class StatusDocumentTest {
  private static final Path PAGE = Path.of("..", "docs", "status.md");
  private static final String COMMAND =
      "mvn -o -q -pl daemon -am test -Dtest=StatusDocumentTest"
          + " -Dsurefire.failIfNoSpecifiedTests=false -Dpmfs.write=true";
  private static final String HEAD = "\n| field | type | what |\n|---|---|---|\n";

  @Test
  void page_hasTheFiguresOfTheStatus() throws Exception {
    String page = Files.readString(PAGE, UTF_8);
    StringBuilder written = new StringBuilder(page.substring(0, page.indexOf(HEAD))).append(HEAD);
    append(StatusJson.fields(), "", written);

    if (Boolean.getBoolean("pmfs.write")) {
      Files.writeString(PAGE, written, UTF_8);
    } else {
      assertThat(page).as("the figures changed: " + COMMAND).isEqualTo(written.toString());
    }
  }

  @Test
  void page_saysHowToWriteItAnew() throws Exception {
    assertThat(Files.readString(PAGE, UTF_8)).contains(COMMAND);
  }

  /** A row for each figure in the order of JSON; rows for parts are optional. */
  private static void append(List<RecordComponent> fields, String prefix, StringBuilder rows) {
    for (RecordComponent component : fields) {
      String path = prefix + component.getName();
      boolean isList = component.getType() == List.class;
      Class<?> content = isList ? element(component) : component.getType();
      Figure figure = component.getAccessor().getAnnotation(Figure.class);
      if (figure != null) {
        rows.append(
            String.format("| `%s` | %s | %s |%n", path, word(component, content), meaning(figure)));
      } else {
        assertThat(content).as("%s needs a @Figure", path).matches(Class::isRecord, "a part");
      }
      if (content.isRecord()) {
        append(List.of(content.getRecordComponents()), path + (isList ? "[]." : "."), rows);
      }
    }
  }

  private static String meaning(Figure figure) {
    return figure.label().length == 0
        ? figure.value()
        : figure.value() + ": `" + figure.label()[1] + "`";
  }

  private static Class<?> element(RecordComponent list) {
    return (Class<?>) ((ParameterizedType) list.getGenericType()).getActualTypeArguments()[0];
  }

  private static String word(RecordComponent component, Class<?> content) {
    if (component.getType() == List.class) {
      return "array of " + word(content) + "s";
    }
    boolean mayBeNull = component.getAnnotatedType().isAnnotationPresent(Nullable.class);
    return word(content) + (mayBeNull ? " or null" : "");
  }

  private static String word(Class<?> type) {
    if (type == String.class) {
      return "string";
    }
    if (type == boolean.class) {
      return "boolean";
    }
    return type.isPrimitive() || Number.class.isAssignableFrom(type) ? "number" : "object";
  }
}
