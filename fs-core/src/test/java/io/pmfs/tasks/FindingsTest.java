package io.pmfs.tasks;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class FindingsTest {
  @TempDir private Path directory;

  private static TaskFinding finding(int i) {
    TaskFinding.Kind[] kinds = TaskFinding.Kind.values();
    return new TaskFinding(
        FileName.ofLatin1("\u00ff" + i), kinds[i % kinds.length], "reason \u00e4 " + i);
  }

  private static Findings filled(Findings findings, int count) {
    for (int i = 0; i < count; i++) {
      findings.add(finding(i));
    }
    return findings;
  }

  @Test
  void list_inPages_isAllInOrder() {
    try (Findings findings = filled(new Findings(new ScratchFiles(List.of(directory))), 5432)) {
      List<TaskFinding> all = new ArrayList<>();
      for (List<TaskFinding> page = findings.list(0, 333);
          !page.isEmpty();
          page = findings.list(all.size(), 333)) {
        all.addAll(page);
      }

      assertThat(all).hasSize(5432);
      for (int i = 0; i < all.size(); i++) {
        assertThat(all.get(i)).isEqualTo(finding(i));
      }
      assertThat(directory).as("its file has no name").isEmptyDirectory();
    }
  }

  @Test
  void add_beyondTheLimit_keepsTheFirst() {
    int more = Findings.MOST + 10;
    try (Findings findings = filled(new Findings(new ScratchFiles(List.of(directory))), more)) {
      assertThat(findings.size()).isEqualTo(Findings.MOST);
      assertThat(findings.list(Findings.MOST - 1L, 9)).containsExactly(finding(Findings.MOST - 1));
    }
  }

  @Test
  void add_withoutAPlaceForAFile_keepsTheFirstInMemory() {
    Path no = directory.resolve("no");
    try (Findings findings = filled(new Findings(new ScratchFiles(List.of(no))), 5000)) {
      assertThat(findings.list(0, 9999)).hasSize(Findings.IN_MEMORY);
      assertThat(findings.list(Findings.IN_MEMORY, 9)).isEmpty();
    }
  }

  @Test
  void create_firstPlaceFails_takesTheNext() throws Exception {
    ScratchFiles scratch = new ScratchFiles(List.of(directory.resolve("no"), directory));
    try (Findings findings = filled(new Findings(scratch), 2000)) {
      assertThat(findings.list(1999, 1)).containsExactly(finding(1999));
    }
  }

  @Test
  void close_forgetsAll() {
    Findings findings = filled(new Findings(new ScratchFiles(List.of(directory))), 2000);
    findings.close();
    findings.add(finding(1));

    assertThat(findings.list(0, 9)).isEmpty();
  }
}
