package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.writable.tree.Listing;
import io.pmfs.writable.tree.Listing.Child;
import io.pmfs.writable.tree.PackedNames;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class ListingTest {
  private static List<FileName> all(Listing listing, int limit) {
    List<FileName> names = new ArrayList<>();
    long from = 0;
    while (true) {
      List<Child> found = listing.from(from, limit);
      found.forEach(child -> names.add(child.name()));
      if (found.size() < limit) {
        return names;
      }
      from = found.get(found.size() - 1).position() + 1;
    }
  }

  @Test
  void changes_ofMany_areAsInAMap() {
    Random random = new Random(1);
    Map<FileName, Long> model = new HashMap<>();
    Listing listing = new Listing();
    listing.beginLoading();
    PackedNames loaded = new PackedNames();
    for (int i = 0; i < 20_000; i++) {
      FileName name = FileName.of("name" + i);
      loaded.add(Child.of(name, i + 1, FileType.REGULAR));
      model.put(name, i + 1L);
    }
    listing.add(FileName.of("meanwhile"), 7, FileType.REGULAR);
    model.put(FileName.of("meanwhile"), 7L);
    listing.endLoading(loaded);
    for (int i = 0; i < 30_000; i++) {
      FileName name = FileName.of("name" + random.nextInt(30_000));
      if (random.nextBoolean()) {
        listing.add(name, i + 100, FileType.REGULAR);
        model.put(name, i + 100L);
      } else {
        listing.remove(name);
        model.remove(name);
      }
    }
    for (int i = 0; i < 30_000; i++) {
      FileName name = FileName.of("name" + i);
      Child found = listing.find(name);
      assertThat(found == null ? null : found.inode()).isEqualTo(model.get(name));
    }
    List<FileName> names = all(listing, 100);
    assertThat(names).hasSameSizeAs(model.keySet());
    assertThat(new HashSet<>(names)).isEqualTo(model.keySet());
  }
}
