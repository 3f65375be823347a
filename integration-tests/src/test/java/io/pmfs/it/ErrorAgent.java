package io.pmfs.it;

import static net.bytebuddy.matcher.ElementMatchers.isAbstract;
import static net.bytebuddy.matcher.ElementMatchers.isMethod;
import static net.bytebuddy.matcher.ElementMatchers.isNative;
import static net.bytebuddy.matcher.ElementMatchers.nameStartsWith;
import static net.bytebuddy.matcher.ElementMatchers.not;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.instrument.Instrumentation;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;

/**
 * Has each method of pmfs in another process ask an {@link ErrorSwitch} first, which may throw an
 * Error there. What catches Errors at the edge of a thread is left as it is: nothing calls it that
 * could catch them.
 */
public final class ErrorAgent {
  private static final String BYTE_BUDDY = "byte-buddy.jar";

  private ErrorAgent() {}

  /** Called by Java before the program begins. */
  public static void premain(String directory, Instrumentation instrumentation) {
    ErrorSwitch.watch(Path.of(directory));
    new AgentBuilder.Default()
        .disableClassFormatChanges()
        .type(
            nameStartsWith("io.pmfs.")
                .and(not(nameStartsWith("io.pmfs.it.")))
                .and(not(nameStartsWith("io.pmfs.posix.DaemonThread")))
                .and(not(nameStartsWith("io.pmfs.posix.DaemonPool")))
                .and(not(nameStartsWith("io.pmfs.posix.Troubles")))
                .and(not(nameStartsWith("io.pmfs.daemon.process.DaemonLog"))))
        .transform(
            (builder, type, loader, module, domain) ->
                builder.visit(
                    Advice.to(Asking.class)
                        .on(isMethod().and(not(isAbstract())).and(not(isNative())))))
        .installOn(instrumentation);
  }

  /** What each method does first. */
  static final class Asking {
    private Asking() {}

    @Advice.OnMethodEnter
    static void enter() {
      ErrorSwitch.pass();
    }
  }

  /**
   * Makes the agent's file; the option for a process of any user's, with the switch's directory.
   */
  static String option(Path directory) {
    Path file = directory.resolve("agent.jar");
    copyByteBuddy(directory);
    Manifest manifest = new Manifest();
    Attributes main = manifest.getMainAttributes();
    main.put(Attributes.Name.MANIFEST_VERSION, "1.0");
    main.put(new Attributes.Name("Premain-Class"), ErrorAgent.class.getName());
    main.put(Attributes.Name.CLASS_PATH, BYTE_BUDDY);
    try (OutputStream out = Files.newOutputStream(file);
        JarOutputStream jar = new JarOutputStream(out, manifest)) {
      for (Class<?> type :
          new Class<?>[] {
            ErrorAgent.class, Asking.class, ErrorSwitch.class, ErrorSwitch.Armed.class
          }) {
        String name = type.getName().replace('.', '/') + ".class";
        jar.putNextEntry(new JarEntry(name));
        try (var in = ErrorAgent.class.getResourceAsStream("/" + name)) {
          jar.write(in.readAllBytes());
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return "-javaagent:" + file + "=" + directory;
  }

  private static void copyByteBuddy(Path directory) {
    try {
      URI from = Advice.class.getProtectionDomain().getCodeSource().getLocation().toURI();
      Files.copy(Path.of(from), directory.resolve(BYTE_BUDDY));
    } catch (URISyntaxException e) {
      throw new IllegalStateException(e);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
