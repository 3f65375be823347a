package io.pmfs.distribution;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.module.ModuleDescriptor.Version;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.Test;

/**
 * The native libraries of all jars, for Linux on x86-64 and aarch64. A library names in its table
 * of strings each version of a symbol that it needs, and the dynamic linker refuses it on systems
 * that lack one. So all these names must be known to the oldest system that docs/installation.md
 * names.
 */
final class NativeLibrariesTest {
  /** The newest versions that RHEL 8 has: glibc 2.28, libstdc++ and libgcc of GCC 8. */
  private static final Map<String, Version> NEWEST =
      Map.of(
          "GLIBC", Version.parse("2.28"),
          "GLIBCXX", Version.parse("3.4.25"),
          "CXXABI", Version.parse("1.3.11"),
          "GCC", Version.parse("7.0.0"));

  private static final Pattern NEEDED =
      Pattern.compile("(GLIBC|GLIBCXX|CXXABI|GCC)_(\\d+(?:\\.\\d+)+)");

  /** The first bytes of an ELF file for 64 bits, little-endian; the last two name the processor. */
  private static final Pattern LIBRARY =
      Pattern.compile("\\x7fELF\\x02\\x01.{12}[\\x3e\\xb7]\\x00", Pattern.DOTALL);

  private static final int HEAD = 20;

  private final List<String> examined = new ArrayList<>();
  private final List<String> tooNew = new ArrayList<>();

  @Test
  void libraries_ofAllJars_needNothingThatRhel8Lacks() throws IOException {
    for (String path : System.getProperty("java.class.path", "").split(File.pathSeparator, -1)) {
      if (path.endsWith(".jar")) {
        examineJar(path);
      }
    }

    assertThat(tooNew).isEmpty();
    assertThat(examined)
        .contains("librocksdbjni-linux64.so", "librocksdbjni-linux-aarch64.so")
        .contains("jni/x86_64-Linux/libjffi-1.2.so", "jni/aarch64-Linux/libjffi-1.2.so")
        .anyMatch(name -> name.startsWith("linux/amd64/libzstd-jni"))
        .anyMatch(name -> name.startsWith("linux/aarch64/libzstd-jni"));
  }

  private void examineJar(String path) throws IOException {
    try (ZipFile jar = new ZipFile(path)) {
      for (ZipEntry entry : jar.stream().filter(e -> e.getName().contains(".so")).toList()) {
        try (InputStream in = jar.getInputStream(entry)) {
          String head = new String(in.readNBytes(HEAD), ISO_8859_1);
          if (LIBRARY.matcher(head).matches()) {
            examine(entry.getName(), new String(in.readAllBytes(), ISO_8859_1));
          }
        }
      }
    }
  }

  private void examine(String name, String content) {
    boolean needsGlibc = false;
    Matcher needed = NEEDED.matcher(content);
    while (needed.find()) {
      needsGlibc = true;
      Version newest = NEWEST.get(needed.group(1));
      if (newest != null && Version.parse(needed.group(2)).compareTo(newest) > 0) {
        tooNew.add(name + ": " + needed.group());
      }
    }
    if (needsGlibc) {
      examined.add(name);
    }
  }
}
