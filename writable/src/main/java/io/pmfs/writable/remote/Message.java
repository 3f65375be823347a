package io.pmfs.writable.remote;

import io.pmfs.tier.FsException;
import io.pmfs.tier.ReadSink;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.OwnedFileSystem;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.EntryConsumer;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Pattern;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * Requests to the owner of a writable mount and to other nodes, and their answers (docs/formats.md,
 * Peers). Each method of {@link OwnedFileSystem} or {@link NodeData} is a request with its
 * arguments; a listing or a read is answered with what its consumer would get.
 */
final class Message {
  /** What an answer begins with. */
  enum Kind {
    RESULT(0),
    FAILURE(1),
    /** The owner does not know the node, or no longer: it joins, and asks again. */
    NOT_JOINED(2),
    /** The owner has another version of pmfs. */
    OTHER_VERSION(3),
    /** The node has sent later requests after it had given up this one. */
    GIVEN_UP(4);

    final int number;

    Kind(int number) {
      this.number = number;
    }

    static Kind of(int number) throws IOException {
      for (Kind kind : values()) {
        if (kind.number == number) {
          return kind;
        }
      }
      throw new IOException("an answer of an unknown kind");
    }
  }

  /** Entries in the answer to one listing. */
  static final int LISTED = 1024;

  /** Requests to the owner. */
  static final Map<String, Method> TO_OWNER = methods(OwnedFileSystem.class);

  /** The owner's requests to a node. */
  static final Map<String, Method> TO_NODE = methods(NodeData.class);

  private static final int VERSION =
      31 * Wire.fingerprint(OwnedFileSystem.class) + Wire.fingerprint(NodeData.class);
  private static final int HEAD_BYTES = 256;
  private static final Type ENTRIES = Wire.list(WritableFileSystem.Entry.class);
  private static final Type NUMBERS = Wire.list(Long.class);

  private Message() {}

  private static Map<String, Method> methods(Class<?> requests) {
    Map<String, Method> methods = new HashMap<>();
    for (Method method : requests.getMethods()) {
      if (methods.put(method.getName(), method) != null) {
        throw new IllegalStateException("two requests are called " + method.getName());
      }
    }
    return methods;
  }

  /** The type of the answer to a request. */
  static Type result(Method method) {
    List<Class<?>> types = Arrays.asList(method.getParameterTypes());
    if (types.contains(EntryConsumer.class)) {
      return ENTRIES;
    }
    return types.contains(ReadSink.class) ? byte[].class : method.getGenericReturnType();
  }

  private static boolean isSent(Type type) {
    return type != EntryConsumer.class && type != ReadSink.class;
  }

  // ---- requests

  /** The head of a request; {@link #from} says who asks. */
  private static void head(DataOutputStream out) throws IOException {
    out.writeInt(VERSION);
    out.writeInt(0);
    out.writeLong(0);
  }

  /** The body of a request; {@link #from} says who asks. */
  static byte[] request(Method method, Object[] arguments) {
    Type[] types = method.getGenericParameterTypes();
    int content = 0;
    for (Object argument : arguments) {
      content += argument instanceof ByteBuffer buffer ? buffer.remaining() : 0;
    }
    return written(
        HEAD_BYTES + content,
        out -> {
          head(out);
          for (int i = 0; i < types.length; i++) {
            if (isSent(types[i])) {
              Wire.put(out, types[i], arguments[i]);
            }
          }
        });
  }

  /**
   * Sets who asks.
   *
   * @param era a number that grows whenever the node has given up a request
   */
  static void from(int node, long era, byte[] request) {
    ByteBuffer.wrap(request).putInt(Integer.BYTES, node).putLong(2 * Integer.BYTES, era);
  }

  /**
   * The answer to a request to join.
   *
   * @param node the number of the node's session
   * @param mount the id of the owner's state
   */
  record Joined(int node, String mount) {
    private static final Pattern MOUNT = Pattern.compile("[0-9a-zA-Z-]{1,64}");

    /** The id becomes a part of a directory's name. */
    Joined {
      if (!MOUNT.matcher(mount).matches()) {
        throw new IllegalArgumentException("not the id of a mount");
      }
    }
  }

  /** The body of a request to join. */
  static byte[] join(UUID member, UUID session, String name) {
    return written(
        HEAD_BYTES,
        out -> {
          head(out);
          Wire.put(out, UUID.class, member);
          Wire.put(out, UUID.class, session);
          Wire.put(out, String.class, name);
        });
  }

  /** The body of a request with inode numbers. */
  static byte[] numbers(List<Long> numbers) {
    return written(
        HEAD_BYTES,
        out -> {
          head(out);
          Wire.put(out, NUMBERS, numbers);
        });
  }

  /** A request as it arrived. */
  static final class Request {
    private final DataInputStream in;
    final boolean isOurVersion;
    final int node;
    final long era;

    Request(byte[] body) throws IOException {
      in = new DataInputStream(new ByteArrayInputStream(body));
      isOurVersion = in.readInt() == VERSION;
      node = in.readInt();
      era = in.readLong();
    }

    String name() throws IOException {
      return (String) value(String.class);
    }

    UUID id() throws IOException {
      return (UUID) value(UUID.class);
    }

    @SuppressWarnings("unchecked") // as written by numbers()
    List<Long> numbers() throws IOException {
      return (List<Long>) value(NUMBERS);
    }

    private Object value(Type type) throws IOException {
      Object value = Wire.get(in, type);
      if (value == null) {
        throw new IOException("a missing value");
      }
      return value;
    }

    /** The arguments of a method; null for those that are not sent. */
    @Nullable Object[] arguments(Method method) throws IOException {
      Type[] types = method.getGenericParameterTypes();
      @Nullable Object[] arguments = new Object[types.length];
      for (int i = 0; i < types.length; i++) {
        arguments[i] = isSent(types[i]) ? Wire.get(in, types[i]) : null;
      }
      return arguments;
    }
  }

  // ---- answers

  static byte[] answer(Type type, @Nullable Object value) {
    int content = value instanceof byte[] bytes ? bytes.length : 0;
    return answer(HEAD_BYTES + content, Kind.RESULT, out -> Wire.put(out, type, value));
  }

  static byte[] failure(FsException failure) {
    return answer(HEAD_BYTES, Kind.FAILURE, out -> Wire.put(out, FsException.class, failure));
  }

  static byte[] answer(Kind kind) {
    return answer(HEAD_BYTES, kind, out -> {});
  }

  private static byte[] answer(int size, Kind kind, Writing writing) {
    byte[] bytes =
        written(
            size,
            out -> {
              out.writeInt(0);
              out.writeByte(kind.number);
              writing.to(out);
            });
    ByteBuffer.wrap(bytes).putInt(0, sum(bytes));
    return bytes;
  }

  private static int sum(byte[] answer) {
    CRC32C sum = new CRC32C();
    sum.update(answer, Integer.BYTES, answer.length - Integer.BYTES);
    return (int) sum.getValue();
  }

  /** An answer as it arrived. */
  static final class Answer {
    private final DataInputStream in;
    final Kind kind;

    /**
     * Reads the beginning.
     *
     * @throws IOException if the bytes are not what the owner sent
     */
    Answer(byte[] bytes) throws IOException {
      in = new DataInputStream(new ByteArrayInputStream(bytes));
      if (bytes.length <= Integer.BYTES || in.readInt() != sum(bytes)) {
        throw new IOException("an answer that does not match its checksum");
      }
      kind = Kind.of(in.readByte());
    }

    @Nullable Object value(Type type) throws IOException {
      return Wire.get(in, type);
    }

    FsException failure() throws IOException {
      if (Wire.get(in, FsException.class) instanceof FsException failure) {
        return failure;
      }
      throw new IOException("a failure without a reason");
    }
  }

  // ---- bytes

  private interface Writing {
    void to(DataOutputStream out) throws IOException;
  }

  private static byte[] written(int size, Writing writing) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(size);
    try {
      writing.to(new DataOutputStream(bytes));
    } catch (IOException e) {
      throw new IllegalStateException("writing to memory", e);
    }
    return bytes.toByteArray();
  }
}
