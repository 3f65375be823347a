package io.pmfs.daemon.dataset;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.places.SourceIdentity;
import io.pmfs.places.SourceIdentity.Form;
import io.pmfs.settings.SourceSettings;
import io.pmfs.shards.ShardException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a mount shows for directories with tar files, and how it describes the other form. */
final class DatasetSourceTest {
  @TempDir private Path temporary;
  private Path directory;

  @BeforeEach
  void makeTarFiles() throws Exception {
    directory = Files.createDirectory(temporary.toRealPath().resolve("shards"));
    write("shard-0.tar", "shard-1.tar");
  }

  private void write(String... names) throws Exception {
    for (String name : names) {
      Files.write(directory.resolve(name), new byte[1024]);
    }
  }

  private void assertShown(Path source, String form, boolean nested, Form shown, String says)
      throws Exception {
    SourceSettings settings = new SourceSettings(source, form, nested, 1, null);
    try (DatasetSource opened = DatasetSource.open(settings)) {
      assertThat(opened.sourceIdentity().form()).isEqualTo(shown);
      assertThat(opened.description()).isEqualTo(says);
    }
  }

  @Test
  void open_directoryOfTarFiles_showsThem() throws Exception {
    assertShown(
        directory,
        "auto",
        false,
        Form.DIRECTORY,
        "its 2 tar files as they are; --source-form tar shows their content");
    Files.delete(directory.resolve("shard-1.tar"));
    assertShown(
        directory,
        "auto",
        false,
        Form.DIRECTORY,
        "its tar file as it is; --source-form tar shows its content");
  }

  @Test
  void open_directoryOfTarFilesAskedFor_saysNothing() throws Exception {
    assertShown(directory, "directory", false, Form.DIRECTORY, "");
  }

  @Test
  void open_otherFilesAmongTheTarFiles_showsAllAndSaysNothing() throws Exception {
    write("shard-0.idx");

    assertShown(directory, "auto", false, Form.DIRECTORY, "");
    assertShown(directory, "auto", true, Form.DIRECTORY, "");
  }

  @Test
  void open_contentAskedFor_showsIt() throws Exception {
    String says =
        "the content of its 2 tar files; --source-form directory shows the files themselves";
    assertShown(directory, "tar", false, Form.TARS, says);
    assertShown(directory, "auto", true, Form.TARS, says);
  }

  @Test
  void open_packed_showsTheContent() throws Exception {
    write("pmfs-pack.json");
    Files.delete(directory.resolve("shard-1.tar"));

    assertShown(
        directory,
        "auto",
        false,
        Form.TARS,
        "the content of its tar file; --source-form directory shows the file itself");
  }

  @Test
  void open_packingUnfinished_isRefused() throws Exception {
    write("pmfs-pack.partial");
    SourceSettings settings = new SourceSettings(directory, "auto", false, 1, null);

    assertThatThrownBy(() -> DatasetSource.open(settings)).isInstanceOf(ShardException.class);
  }

  @Test
  void open_tarFile_showsTheContent() throws Exception {
    assertShown(
        directory.resolve("shard-0.tar"),
        "auto",
        false,
        Form.TAR,
        "the content of the tar file; mount its directory to see the file itself");
  }

  /** Sessions from before decision 41 show the content of such directories. */
  @Test
  void reopen_keepsTheFormOfTheSession() throws Exception {
    SourceSettings auto = new SourceSettings(directory, "auto", false, 1, null);
    SourceSettings asked = new SourceSettings(directory, "tar", false, 1, null);
    String identity;
    SourceIdentity began;
    try (DatasetSource first = DatasetSource.open(asked)) {
      identity = first.identity();
      began = first.sourceIdentity();
    }
    try (DatasetSource next = DatasetSource.reopen(auto, began)) {
      assertThat(next.identity()).isEqualTo(identity);
      assertThat(next.sourceIdentity()).isEqualTo(began);
    }
  }
}
