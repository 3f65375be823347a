package io.pmfs.packing;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What GNU tar unpacks is what is served. */
final class ShardStoreTest {
  /** A tree with all that a tar file can hold, but for devices, which take root. */
  private static final String TREE =
      """
      mkdir -p tree/d/e tree/empty && cd tree
      printf hello > a; : > nothing; head -c 70000 /dev/urandom > d/big; printf x > d/e/x
      ln -s a link; ln -s ../nowhere d/dangling; ln d/big d/e/hard; ln link d/hardlink
      mkfifo pipe; chmod 4751 a; chmod 1777 empty; chmod 000 nothing
      name=$(printf 'n%.0s' {1..200}); mkdir -p long/$name/$name; printf deep > long/$name/$name/$name
      ln -s $name/$name long/target; ln long/$name/$name/$name long/hard
      printf b > "$(printf 'caf\\351')"; printf n > $'new\\nline'; printf s > ' sp ace '
      printf 1 > 'a.b'; printf 2 > 'a!'; mkdir 'a-'; printf 3 > 'a-/x'; mkdir $'a\\001'; printf 4 > $'a\\001/y'
      touch -d '2001-02-03 04:05:06.123456789' a; touch -d '1960-01-01' d/e/x; touch -h -d '2010-01-01' link
      touch -d '2002-02-02' d/e long empty
      """;

  @TempDir private Path directory;

  private ShardStore store(IndexForm form, String... shards) throws Exception {
    Path index = directory.resolve("index");
    BackingStores.build(directory, form, index, shards);
    return new ShardStore(new PlainDirectory(directory), ShardIndex.open(index));
  }

  @ParameterizedTest
  @ValueSource(strings = {"gnu", "pax", "posix", "oldgnu"})
  void tree_ofTar_isWhatTarUnpacks(String format) throws Exception {
    Shell.run(
        directory,
        TREE
            + "cd ..; tar --format=%s -cf t.tar -C tree .; mkdir out; tar -xpf t.tar -C out"
                .formatted(format));
    try (ShardStore store = store(new IndexForm(true, false), "t.tar")) {
      assertThat(Listing.ofStore(store)).isEqualTo(Listing.ofDirectory(directory.resolve("out")));
    }
  }

  @Test
  void tree_ofShards_isOneDirectoryEach() throws Exception {
    Shell.run(
        directory,
        TREE
            + """
            cd ..; mkdir out out/one out/two
            tar -cf one.tar -C tree d a; tar -xpf one.tar -C out/one
            tar -cf two.tar -C tree long 'a-'; tar -xpf two.tar -C out/two
            chmod 755 out/one out/two; touch -r one.tar out/one; touch -r two.tar out/two
            """);
    try (ShardStore store = store(new IndexForm(false, false), "one.tar", "two.tar")) {
      assertThat(Listing.ofStore(store)).isEqualTo(Listing.ofDirectory(directory.resolve("out")));
    }
  }
}
