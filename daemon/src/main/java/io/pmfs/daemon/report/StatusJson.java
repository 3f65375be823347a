package io.pmfs.daemon.report;

import com.google.gson.JsonDeserializationContext;
import com.google.gson.JsonDeserializer;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonSerializationContext;
import com.google.gson.JsonSerializer;
import com.google.gson.JsonSyntaxException;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The JSON of a {@link StatusReport}: one object with the fields of all subjects. */
public final class StatusJson
    implements JsonSerializer<StatusReport>, JsonDeserializer<StatusReport> {
  private static final RecordComponent[] PARTS = StatusReport.class.getRecordComponents();

  /** The oldest fields, in their original order; later ones follow. */
  private static final List<String> FIRST =
      List.of(
          ("mountpoint source user pid uptimeSeconds bridge bridgeReason readMode readModeReason"
                  + " logFile stateDirectory stateFailure tiers reads staging sourceOperations"
                  + " cluster task metrics engagement requests memory accessLog waiting"
                  + " sourceAbsence threadFailure recent detached outputs holders keptSeconds"
                  + " nodeCache failures renumberedFiles")
              .split(" "));

  public static List<RecordComponent> fields() {
    return Arrays.stream(PARTS)
        .flatMap(
            part ->
                isSubject(part)
                    ? Arrays.stream(part.getType().getRecordComponents())
                    : Stream.of(part))
        .sorted(Comparator.comparingInt(field -> place(field.getName())))
        .toList();
  }

  private static int place(String field) {
    int index = FIRST.indexOf(field);
    return index < 0 ? FIRST.size() : index;
  }

  /**
   * Whether a part's components are fields of the object because the part is not itself a figure.
   */
  private static boolean isSubject(RecordComponent part) {
    return !part.getAccessor().isAnnotationPresent(Figure.class);
  }

  @Override
  public JsonElement serialize(StatusReport report, Type type, JsonSerializationContext context) {
    JsonObject all = new JsonObject();
    for (RecordComponent part : PARTS) {
      JsonElement json = context.serialize(value(part, report), part.getGenericType());
      if (isSubject(part)) {
        json.getAsJsonObject().asMap().forEach(all::add);
      } else {
        all.add(part.getName(), json);
      }
    }
    JsonObject ordered = new JsonObject();
    for (RecordComponent field : fields()) {
      ordered.add(field.getName(), all.get(field.getName()));
    }
    return ordered;
  }

  private static @Nullable Object value(RecordComponent part, StatusReport report) {
    try {
      return part.getAccessor().invoke(report);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(part.toString(), e);
    }
  }

  @Override
  public StatusReport deserialize(JsonElement json, Type type, JsonDeserializationContext context) {
    if (!(json instanceof JsonObject all)) {
      throw new JsonSyntaxException("not an object");
    }
    List<@Nullable Object> parts = new ArrayList<>();
    for (RecordComponent part : PARTS) {
      JsonElement found = isSubject(part) ? all : all.get(part.getName());
      parts.add(context.deserialize(found, part.getGenericType()));
    }
    try {
      return (StatusReport)
          StatusReport.class.getDeclaredConstructors()[0].newInstance(parts.toArray());
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }
}
