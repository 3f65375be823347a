package io.pmfs.writable.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.source.StoreStatistics;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.OwnedFileSystem;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Entry;
import io.pmfs.writable.WritableFileSystem.EntryConsumer;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Every operation of a node arrives at the owner as it was made, and its result comes back. */
class OwnerRequestTest {
  private static final Instant TIME = Instant.ofEpochSecond(1, 2);
  private static final Node NODE =
      new Node(7, new Attributes(0100644, 1, 2, 3, 0, 5, 6, TIME, TIME, TIME));

  /** What is not asked for at once, or is the node's own matter. */
  private static final Set<String> NOT_ASKED =
      Set.of(
          "close", "endSession", "forget", "drainStatus", "stateFailure", "sourceFailure", "drain");

  /** What was asked of the owner, and in which bytes. */
  static final class Asked implements OwnerLink {
    final Map<OwnerRequest, byte[]> requests = new ConcurrentSkipListMap<>();
    final List<String> calls = new CopyOnWriteArrayList<>();

    @Override
    public byte[] ask(String title, byte[] body) throws IOException {
      OwnerRequest request = Objects.requireNonNull(OwnerRequest.of(title));
      MessageReader in = new MessageReader(body);
      assertThat(in.head().isOurVersion()).isTrue();
      byte[] answer;
      try {
        answer = request.make(recorder(), in);
      } catch (Exception e) {
        throw new IOException(e);
      }
      byte[] asked = body.clone();
      Message.from(0, 0, 0, 0, asked);
      if (request.isNumbered()) {
        Message.once(0, asked);
      }
      byte[] bytes = Arrays.copyOfRange(asked, 16, body.length + answer.length - Integer.BYTES);
      int size = answer.length - Integer.BYTES;
      System.arraycopy(answer, Integer.BYTES, bytes, body.length - 16, size);
      requests.put(request, bytes);
      return answer;
    }

    private OwnedFileSystem recorder() {
      return (OwnedFileSystem)
          Proxy.newProxyInstance(
              OwnerRequestTest.class.getClassLoader(),
              new Class<?>[] {OwnedFileSystem.class},
              (proxy, method, arguments) -> {
                calls.add(text(method, arguments));
                return result(method, arguments == null ? new Object[0] : arguments);
              });
    }

    @Override
    public String owner() {
      return "owner";
    }

    /** The values of all requests and answers, in the order of the requests. */
    byte[] bytes() {
      ByteArrayOutputStream all = new ByteArrayOutputStream();
      requests.values().forEach(all::writeBytes);
      return all.toByteArray();
    }
  }

  private static String text(Method method, Object @Nullable [] arguments) {
    String name = method.getName().replace("Here", "");
    return name
        + Arrays.deepToString(
            Arrays.stream(given(arguments))
                .filter(Objects::nonNull)
                .map(OwnerRequestTest::plain)
                .toArray());
  }

  private static Object[] given(Object @Nullable [] arguments) {
    return arguments == null ? new Object[0] : arguments;
  }

  /** Consumers do not travel; buffers are compared by what they hold. */
  private static Object plain(Object argument) {
    if (argument instanceof ByteBuffer bytes) {
      byte[] content = new byte[bytes.remaining()];
      bytes.duplicate().get(content);
      return content;
    }
    return argument instanceof ReadSink || argument instanceof EntryConsumer ? "" : argument;
  }

  private static Object argument(Method method, int index) {
    Class<?> type = method.getParameterTypes()[index];
    if (type == long.class) {
      return 100L + index;
    } else if (type == int.class) {
      return 5 + index;
    } else if (type == boolean.class) {
      return index % 2 == 0;
    } else if (type == FileName.class) {
      return FileName.of("name" + index);
    } else if (type == Caller.class) {
      return new Caller(77, 8, 9, WritableFileSystem.NO_PROCESS);
    } else if (type == byte[].class) {
      return new byte[] {1, 0, -1};
    } else if (type == ByteBuffer.class) {
      return ByteBuffer.wrap(new byte[] {4, 5, 6});
    } else if (type == NewAttributes.class) {
      return new NewAttributes(1, null, 3, null, TIME, null, 0, true);
    } else if (type == ReadSink.class) {
      return new Content();
    } else if (type == EntryConsumer.class) {
      return (EntryConsumer)
          entry -> entry.equals(new Entry(FileName.of("x"), 2, FileType.FIFO, 3));
    }
    throw new IllegalArgumentException(type.toString());
  }

  private static @Nullable Object result(Method method, Object[] arguments) throws IOException {
    Class<?> type = method.getReturnType();
    for (Object argument : arguments) {
      if (argument instanceof EntryConsumer entries) {
        assertThat(entries.accept(new Entry(FileName.of("x"), 2, FileType.FIFO, 3))).isTrue();
      } else if (argument instanceof ReadSink sink) {
        ByteBuffer bytes = sink.buffer(3).put(new byte[] {7, 8, 9}).flip();
        sink.accept(new ReadResult.Bytes(bytes));
      }
    }
    if (type == Node.class) {
      return NODE;
    } else if (type == Opened.class) {
      return new Opened(NODE, 4, true, 0, null);
    } else if (type == long.class) {
      return 1L << 40;
    } else if (type == int.class) {
      return 3;
    } else if (type == boolean.class) {
      return true;
    } else if (type == FileName.class) {
      return FileName.of("target");
    } else if (type == byte[].class) {
      return new byte[] {3};
    } else if (type == Map.class) {
      return Map.of(FileName.of("user.x"), new byte[] {4});
    } else if (type == StoreStatistics.class) {
      return new StoreStatistics(1, 2, 3, 4, 5, 6, 7, 8);
    } else if (type == DrainStatus.class) {
      return DrainStatus.NONE;
    } else if (type == List.class) {
      return List.of("one", "two");
    } else if (type == String.class) {
      return "a failure";
    }
    return null;
  }

  /** What a read gives. */
  private static final class Content implements ReadSink {
    private final ByteBuffer bytes = ByteBuffer.allocateDirect(100);
    int size;

    @Override
    public ByteBuffer buffer(int wanted) {
      return bytes.clear();
    }

    @Override
    public void accept(ReadResult piece) {
      size = piece.size();
    }
  }

  /** Makes every operation, in the order of their names. */
  static Asked askEverything() throws Exception {
    Asked asked = new Asked();
    Path nowhere = Path.of("/nowhere");
    OutputCalls calls = calls();
    NodeFiles files = new NodeFiles(List.of(), nowhere, calls, InstantSource.system());
    RemoteFileSystem.Self self =
        new RemoteFileSystem.Self(new UUID(1, 2), "node", new UUID(3, 4), nowhere, calls, files);
    try (WritableFileSystem remote = RemoteFileSystem.join(asked, self, false, Duration.ZERO, 0)) {
      List<Method> methods = new ArrayList<>(List.of(WritableFileSystem.class.getMethods()));
      methods.removeIf(method -> NOT_ASKED.contains(method.getName()));
      methods.sort(Comparator.comparing(Method::getName));
      for (Method method : methods) {
        Object[] arguments = new Object[method.getParameterCount()];
        for (int i = 0; i < arguments.length; i++) {
          arguments[i] = argument(method, i);
        }
        asked.calls.clear();
        Object result = method.invoke(remote, arguments);
        assertThat(asked.calls).contains(text(method, arguments));
        Object expected = result(method, new Object[0]);
        assertThat(result).as(method.getName()).usingRecursiveComparison().isEqualTo(expected);
        for (Object argument : arguments) {
          if (argument instanceof Content content) {
            assertThat(content.size).isEqualTo(3);
          }
        }
      }
      assertThat(remote.drain(0)).isTrue();
      assertThat(remote.stateFailure()).isEqualTo("a failure");
      assertThat(remote.sourceFailure()).isEqualTo("a failure");
      remote.open(1, OutputCalls.O_TRUNC, new Caller(2, 3, 4, 5));
    }
    return asked;
  }

  private static OutputCalls calls() {
    return (OutputCalls)
        Proxy.newProxyInstance(
            OwnerRequestTest.class.getClassLoader(),
            new Class<?>[] {OutputCalls.class},
            (proxy, method, arguments) -> {
              throw new AssertionError(method.getName());
            });
  }

  @Test
  void operation_ofANode_arrivesAsItWasMade() throws Exception {
    Set<OwnerRequest> others =
        EnumSet.of(
            OwnerRequest.JOIN,
            OwnerRequest.END_SESSION,
            OwnerRequest.INTERRUPT,
            OwnerRequest.FORGET,
            // By a node that keeps content: KeptContentTest.
            OwnerRequest.CREATE_HERE,
            OwnerRequest.RECORDED,
            OwnerRequest.RESUME,
            OwnerRequest.UNUSED,
            // By a node that got no answer: RemoteFileSystemTest.
            OwnerRequest.CLOSE_UNANSWERED);
    assertThat(EnumSet.complementOf(EnumSet.copyOf(askEverything().requests.keySet())))
        .isSubsetOf(others);
  }
}
