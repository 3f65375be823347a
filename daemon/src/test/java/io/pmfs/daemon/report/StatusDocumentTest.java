package io.pmfs.daemon.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** docs/status.md promises these names: none goes, and none comes unsaid. */
final class StatusDocumentTest {
  private static final Pattern ROW = Pattern.compile("(?m)^\\| `([\\w.\\[\\]]+)` \\| (.*?) \\|");

  /** Objects that may be null have a row that says so. */
  private static final List<String> NULLABLE = List.of("cluster", "task", "accessLog");

  @Test
  void document_namesEveryFieldAndNoOther() throws Exception {
    String text = Files.readString(Path.of("..", "docs", "status.md"));
    List<String> documented =
        ROW.matcher(text.substring(text.indexOf("## Fields")))
            .results()
            .map(row -> row.group(1) + " " + row.group(2).replaceAll(" or null$", ""))
            .toList();
    List<String> existing = new ArrayList<>();
    collect(StatusReport.class, "", existing);

    assertThat(documented).doesNotHaveDuplicates().containsExactlyInAnyOrderElementsOf(existing);
  }

  private static void collect(Class<?> type, String prefix, List<String> fields) {
    for (RecordComponent component : type.getRecordComponents()) {
      String path = prefix + component.getName();
      Class<?> raw = component.getType();
      if (raw == List.class) {
        Class<?> element = (Class<?>) argument(component.getGenericType());
        if (element.isRecord()) {
          collect(element, path + "[].", fields);
        } else {
          fields.add(path + " array of " + word(element) + "s");
        }
      } else if (raw.isRecord()) {
        if (NULLABLE.contains(path)) {
          fields.add(path + " object");
        }
        collect(raw, path + ".", fields);
      } else {
        fields.add(path + " " + word(raw));
      }
    }
  }

  private static Type argument(Type list) {
    return ((ParameterizedType) list).getActualTypeArguments()[0];
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
