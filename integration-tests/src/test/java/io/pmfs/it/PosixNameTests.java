package io.pmfs.it;

import static io.pmfs.it.Posix.outcome;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.it.Posix.Entry;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import jnr.ffi.Pointer;
import org.junit.jupiter.api.Test;

/** What directories list, and which names lead where. */
interface PosixNameTests extends PosixView {
  private List<String> names(String directory) {
    return Posix.list(at(directory)).stream()
        .map(Entry::name)
        .filter(n -> !n.equals(".") && !n.equals(".."))
        .toList();
  }

  private static Set<String> numbered(int count) {
    Set<String> names = new HashSet<>();
    for (int i = 0; i < count; i++) {
      names.add("f" + i);
    }
    return names;
  }

  private void assertListsNumbered(String directory, int count) {
    List<String> names = names(directory);
    assertThat(names).hasSize(count);
    assertThat(new HashSet<>(names).equals(numbered(count))).as("names in " + directory).isTrue();
  }

  @Test
  default void readdir_ofAnyDirectory_hasDotAndDotDotOnce() {
    for (String directory : List.of("", "directories/empty", "directories/many", "names")) {
      assertThat(Posix.list(at(directory)).stream().map(Entry::name).filter(n -> n.equals(".")))
          .hasSize(1);
      assertThat(Posix.list(at(directory)).stream().map(Entry::name).filter(n -> n.equals("..")))
          .hasSize(1);
    }
  }

  @Test
  default void readdir_ofRoot_listsTheTree() {
    assertThat(names(""))
        .containsExactlyInAnyOrder("attributes", "data", "deep", "directories", "names", "types");
  }

  @Test
  default void readdir_ofEmptyAndSingle_listsWhatIsThere() {
    assertThat(names("directories/empty")).isEmpty();
    assertThat(names("directories/single")).containsExactly("f0");
  }

  @Test
  default void readdir_ofTenThousand_listsEachOnce() {
    assertListsNumbered("directories/many", PosixTree.MANY);
  }

  @Test
  default void readdir_ofHundredThousand_listsEachOnce() {
    assertListsNumbered("directories/very-many", PosixTree.VERY_MANY);
  }

  @Test
  default void readdir_twice_keepsTheOrder() {
    assertThat(names("directories/many").equals(names("directories/many"))).isTrue();
  }

  @Test
  default void readdir_besideReadsAndLookupsInIt_listsEachOnce() {
    Pointer stream = Posix.opendir(at("directories/many"));
    List<String> names = new ArrayList<>();
    try {
      for (Pointer e = Posix.LIBC.readdir(stream); e != null; e = Posix.LIBC.readdir(stream)) {
        String name = Posix.entry(e).name();
        names.add(name);
        if (names.size() % 500 == 0 && !name.startsWith(".")) {
          assertThat(Posix.pread(at("directories/many/" + name), 10, 0)).isEmpty();
          assertThat(Posix.list(at("directories/single"))).hasSize(3);
        }
      }
    } finally {
      Posix.LIBC.closedir(stream);
    }
    assertThat(names).hasSize(PosixTree.MANY + 2).doesNotHaveDuplicates();
  }

  @Test
  default void seekdir_toEarlierTelldir_goesOnFromThere() {
    Pointer stream = Posix.opendir(at("directories/many"));
    try {
      for (int i = 0; i < 5000; i++) {
        Posix.LIBC.readdir(stream);
      }
      long place = Posix.LIBC.telldir(stream);
      List<String> first = rest(stream);
      Posix.LIBC.seekdir(stream, place);
      assertThat(rest(stream).equals(first)).as("the same entries again").isTrue();
      assertThat(first).hasSize(PosixTree.MANY + 2 - 5000);
    } finally {
      Posix.LIBC.closedir(stream);
    }
  }

  private static List<String> rest(Pointer stream) {
    List<String> names = new ArrayList<>();
    for (Pointer e = Posix.LIBC.readdir(stream); e != null; e = Posix.LIBC.readdir(stream)) {
      names.add(Posix.entry(e).name());
    }
    return names;
  }

  @Test
  default void readdir_types_areThoseOfStatOrUnknown() {
    for (String directory : List.of("", "types", "names")) {
      for (Entry entry : Posix.list(at(directory))) {
        if (!entry.name().startsWith(".") && entry.type() != 0) {
          assertThat(entry.type() << 12)
              .as("type of %s", entry.name())
              .isEqualTo(Posix.lstat(at(directory + "/" + entry.name())).type());
        }
      }
    }
  }

  @Test
  default void readdir_inodeNumbers_areThoseOfStat() {
    Map<String, Long> listed = new HashMap<>();
    for (Entry entry : Posix.list(at("types"))) {
      listed.put(entry.name(), entry.ino());
    }
    for (String name : List.of("file", "hard", "link", "fifo", "other")) {
      assertThat(listed).containsEntry(name, Posix.lstat(at("types/" + name)).ino());
    }
  }

  @Test
  default void readdir_ofFileOrMissing_fails() {
    assertThat(outcome(Posix.open(at("data/one"), Posix.O_DIRECTORY))).isEqualTo("ENOTDIR");
    assertThat(outcome(Posix.open(at("data/none"), Posix.O_DIRECTORY))).isEqualTo("ENOENT");
  }

  @Test
  default void names_ofAnyBytes_areListedAndLeadToTheirFile() {
    assertThat(names("names")).containsExactlyInAnyOrderElementsOf(PosixTree.NAMES);
    for (String name : PosixTree.NAMES) {
      assertThat(Posix.pread(at("names/" + name), 200, 0))
          .as("content of %s", name)
          .isEqualTo(PosixTree.content(name, 100));
      assertThat(Posix.lstat(at("names/" + name)).size()).isEqualTo(100);
    }
  }

  @Test
  default void names_thatAreAlmostThere_areNotThere() {
    for (String name : List.of("Plain", "plai", "plain ", "\u00ff", "?", "\u00ff\u00fd.bin")) {
      assertThat(outcome(Posix.statOutcome(at("names/" + name), 0))).as(name).isEqualTo("ENOENT");
    }
  }

  @Test
  default void path_ofDepthHundred_leadsToItsFile() {
    assertThat(Posix.pread(at(PosixTree.deepFile()), 200, 0))
        .isEqualTo(PosixTree.content("deep", 100));
  }

  @Test
  default void path_withDotsAndSlashes_leadsToItsFile() {
    assertThat(Posix.pread(at("data/.././/data///odd"), 10, 0)).hasSize(10);
    assertThat(Posix.pread(at("types/link-to-directory/../data/odd"), 10, 0)).hasSize(10);
    assertThat(outcome(Posix.open(at("data/odd/"), Posix.O_RDONLY))).isEqualTo("ENOTDIR");
  }
}
