package io.pmfs.writable.remote;

import com.google.common.reflect.TypeParameter;
import com.google.common.reflect.TypeToken;
import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * Values as bytes, by their declared types: primitives as {@link DataOutputStream} writes them;
 * everything else after a byte that is 0 for null; records as their components, in their order.
 * Both ends must have the same types, which {@link #fingerprint} tells. No type names travel, and
 * only the types below are made of bytes.
 */
final class Wire {
  /** The longest text, name or content that is read. */
  private static final int MOST = 8 << 20;

  /** The most elements of a list or map: far more than {@link Message#LISTED}. */
  private static final int MOST_ELEMENTS = 1 << 16;

  private Wire() {}

  static void put(DataOutputStream out, Type type, @Nullable Object value) throws IOException {
    if (type == void.class) {
      return;
    }
    if (type instanceof Class<?> plain && plain.isPrimitive()) {
      putPrimitive(out, value);
      return;
    }
    out.writeBoolean(value != null);
    if (value != null) {
      putPresent(out, type, value);
    }
  }

  private static void putPrimitive(DataOutputStream out, @Nullable Object value)
      throws IOException {
    if (value instanceof Long number) {
      out.writeLong(number);
    } else if (value instanceof Integer number) {
      out.writeInt(number);
    } else if (value instanceof Boolean bit) {
      out.writeBoolean(bit);
    } else {
      throw new IllegalArgumentException("cannot send " + value);
    }
  }

  private static void putPresent(DataOutputStream out, Type type, Object value) throws IOException {
    if (value instanceof Long || value instanceof Integer || value instanceof Boolean) {
      putPrimitive(out, value);
    } else if (value instanceof byte[] bytes) {
      putBytes(out, bytes);
    } else if (value instanceof ByteBuffer buffer) {
      byte[] bytes = new byte[buffer.remaining()];
      buffer.duplicate().get(bytes);
      putBytes(out, bytes);
    } else if (value instanceof FileName name) {
      putBytes(out, name.bytes());
    } else if (value instanceof String text) {
      putBytes(out, text.getBytes(StandardCharsets.UTF_8));
    } else if (value instanceof Instant time) {
      out.writeLong(time.getEpochSecond());
      out.writeInt(time.getNano());
    } else if (value instanceof UUID id) {
      out.writeLong(id.getMostSignificantBits());
      out.writeLong(id.getLeastSignificantBits());
    } else if (value instanceof FsException failure) {
      out.writeInt(failure.errno().number());
      putBytes(out, text(failure).getBytes(StandardCharsets.UTF_8));
    } else if (value instanceof Enum<?> one) {
      putBytes(out, one.name().getBytes(StandardCharsets.US_ASCII));
    } else if (value instanceof List<?> list) {
      out.writeInt(list.size());
      for (Object element : list) {
        put(out, argument(type, 0), element);
      }
    } else if (value instanceof Map<?, ?> map) {
      out.writeInt(map.size());
      for (Map.Entry<?, ?> entry : map.entrySet()) {
        put(out, argument(type, 0), entry.getKey());
        put(out, argument(type, 1), entry.getValue());
      }
    } else {
      putRecord(out, value);
    }
  }

  /** What the constructor of the exception was given. */
  private static String text(FsException failure) {
    String whole = String.valueOf(failure.getMessage());
    String prefix = failure.errno() + ": ";
    return whole.startsWith(prefix) ? whole.substring(prefix.length()) : whole;
  }

  private static void putBytes(DataOutputStream out, byte[] bytes) throws IOException {
    out.writeInt(bytes.length);
    out.write(bytes);
  }

  private static void putRecord(DataOutputStream out, Object value) throws IOException {
    try {
      for (RecordComponent component : components(value.getClass())) {
        put(out, component.getGenericType(), component.getAccessor().invoke(value));
      }
    } catch (IllegalAccessException | InvocationTargetException e) {
      throw new IllegalArgumentException("cannot send " + value.getClass(), e);
    }
  }

  private static RecordComponent[] components(Class<?> type) {
    RecordComponent[] components = type.getRecordComponents();
    if (components == null) {
      throw new IllegalArgumentException("cannot send a " + type);
    }
    return components;
  }

  /** The type of a list. */
  static Type list(Class<?> element) {
    return listOf(TypeToken.of(element)).getType();
  }

  private static <T> TypeToken<List<T>> listOf(TypeToken<T> element) {
    return new TypeToken<List<T>>() {}.where(new TypeParameter<T>() {}, element);
  }

  private static Type argument(Type type, int index) {
    return ((ParameterizedType) type).getActualTypeArguments()[index];
  }

  // ---- reading

  /**
   * Reads what {@link #put} wrote.
   *
   * @throws IOException if the bytes are not that
   */
  static @Nullable Object get(DataInputStream in, Type type) throws IOException {
    if (type == void.class) {
      return null;
    }
    if (type instanceof Class<?> plain && plain.isPrimitive()) {
      return getPrimitive(in, plain);
    }
    return in.readBoolean() ? getPresent(in, type) : null;
  }

  private static Object getPrimitive(DataInputStream in, Class<?> type) throws IOException {
    if (type == long.class) {
      return in.readLong();
    }
    if (type == int.class) {
      return in.readInt();
    }
    return in.readBoolean();
  }

  private static Object getPresent(DataInputStream in, Type type) throws IOException {
    if (type instanceof ParameterizedType parameterized) {
      return parameterized.getRawType() == List.class ? getList(in, type) : getMap(in, type);
    }
    Class<?> plain = (Class<?>) type;
    if (plain == Long.class) {
      return in.readLong();
    } else if (plain == Integer.class) {
      return in.readInt();
    } else if (plain == Boolean.class) {
      return in.readBoolean();
    } else if (plain == byte[].class) {
      return getBytes(in);
    } else if (plain == ByteBuffer.class) {
      return ByteBuffer.wrap(getBytes(in));
    } else if (plain == FileName.class) {
      return FileName.of(getBytes(in));
    } else if (plain == String.class) {
      return new String(getBytes(in), StandardCharsets.UTF_8);
    } else if (plain == Instant.class) {
      return getInstant(in);
    } else if (plain == UUID.class) {
      return new UUID(in.readLong(), in.readLong());
    } else if (plain == FsException.class) {
      Errno errno = Errno.of(in.readInt());
      return new FsException(errno, new String(getBytes(in), StandardCharsets.UTF_8));
    } else if (plain.isEnum()) {
      return constant(plain, new String(getBytes(in), StandardCharsets.US_ASCII));
    }
    return getRecord(in, plain);
  }

  private static Instant getInstant(DataInputStream in) throws IOException {
    try {
      return Instant.ofEpochSecond(in.readLong(), in.readInt());
    } catch (DateTimeException | ArithmeticException e) {
      throw new IOException("a time that there is not", e);
    }
  }

  private static int count(DataInputStream in, int most) throws IOException {
    int count = in.readInt();
    if (count < 0 || count > most) {
      throw new IOException("a length of " + Integer.toUnsignedString(count));
    }
    return count;
  }

  private static byte[] getBytes(DataInputStream in) throws IOException {
    int count = count(in, MOST);
    byte[] bytes = in.readNBytes(count);
    if (bytes.length < count) {
      throw new EOFException("the bytes end early");
    }
    return bytes;
  }

  private static Object constant(Class<?> type, String name) throws IOException {
    for (Object constant : type.getEnumConstants()) {
      if (((Enum<?>) constant).name().equals(name)) {
        return constant;
      }
    }
    throw new IOException("no " + type.getSimpleName() + " is called so");
  }

  private static List<@Nullable Object> getList(DataInputStream in, Type type) throws IOException {
    List<@Nullable Object> list = new ArrayList<>();
    for (int left = count(in, MOST_ELEMENTS); left > 0; left--) {
      list.add(get(in, argument(type, 0)));
    }
    return list;
  }

  private static Map<@Nullable Object, @Nullable Object> getMap(DataInputStream in, Type type)
      throws IOException {
    Map<@Nullable Object, @Nullable Object> map = new LinkedHashMap<>();
    for (int left = count(in, MOST_ELEMENTS); left > 0; left--) {
      map.put(get(in, argument(type, 0)), get(in, argument(type, 1)));
    }
    return map;
  }

  private static Object getRecord(DataInputStream in, Class<?> type) throws IOException {
    RecordComponent[] components = components(type);
    @Nullable Object[] values = new Object[components.length];
    for (int i = 0; i < values.length; i++) {
      values[i] = get(in, components[i].getGenericType());
    }
    Class<?>[] types =
        Arrays.stream(components).map(RecordComponent::getType).toArray(Class<?>[]::new);
    try {
      Constructor<?> constructor = type.getDeclaredConstructor(types);
      return constructor.newInstance(values);
    } catch (InvocationTargetException e) {
      throw new IOException("an invalid " + type.getSimpleName(), e.getCause());
    } catch (ReflectiveOperationException e) {
      throw new IllegalArgumentException("cannot read a " + type, e);
    }
  }

  // ---- the version

  /** A number of an interface's methods and of the records in them: different types, another. */
  static int fingerprint(Class<?> requests) {
    Set<String> seen = new TreeSet<>();
    for (Method method : requests.getMethods()) {
      seen.add(method.toGenericString());
      for (Type type : method.getGenericParameterTypes()) {
        describe(type, seen);
      }
      describe(method.getGenericReturnType(), seen);
    }
    CRC32C sum = new CRC32C();
    sum.update(String.join("\n", seen).getBytes(StandardCharsets.UTF_8));
    return (int) sum.getValue();
  }

  private static void describe(Type type, Set<String> seen) {
    if (type instanceof ParameterizedType parameterized) {
      Arrays.stream(parameterized.getActualTypeArguments()).forEach(one -> describe(one, seen));
    } else if (type instanceof Class<?> plain && plain.isRecord()) {
      String text = plain + Arrays.toString(plain.getRecordComponents());
      if (seen.add(text)) {
        for (RecordComponent component : plain.getRecordComponents()) {
          describe(component.getGenericType(), seen);
        }
      }
    } else if (type instanceof Class<?> plain && plain.isEnum()) {
      seen.add(plain + Arrays.toString(plain.getEnumConstants()));
    }
  }
}
