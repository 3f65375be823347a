package io.pmfs.stage.formats;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.compression.ZstdCodec;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class DictionaryTrainingTest {
  @TempDir Path directory;
  private final ZstdCodec plain = new ZstdCodec(3);

  @AfterEach
  void close() {
    plain.close();
  }

  /** Large enough to need a second unit of the disk unless it refers to the common content. */
  private static byte[] similar(int i) {
    Random own = new Random(i);
    Random shared = new Random(0);
    StringBuilder text = new StringBuilder();
    while (text.length() < 9000) {
      text.append(Long.toHexString(shared.nextLong()));
      if (own.nextInt(20) == 0) {
        text.append(own.nextInt());
      }
    }
    return text.toString().getBytes(UTF_8);
  }

  private static byte[] random(int i) {
    byte[] bytes = new byte[9000];
    new Random(i).nextBytes(bytes);
    return bytes;
  }

  /** Offers files until there are enough; returns their number. */
  private static int offer(DictionaryTraining training, boolean similar) {
    for (int i = 0; i < 1000; i++) {
      if (training.offer(ByteBuffer.wrap(similar ? similar(i) : random(i)))) {
        return i + 1;
      }
    }
    return 0;
  }

  @Test
  void offer_enough_saysSoOnce() {
    DictionaryTraining training = new DictionaryTraining(3, 4096, 900_000);
    assertThat(offer(training, true)).isBetween(90, 100);
    assertThat(offer(training, true)).isZero();
  }

  @Test
  void offer_whatIsCompressedAlready_isNotTaken() {
    DictionaryTraining training = new DictionaryTraining(3, 4096, 100);
    byte[] jpeg = new byte[1000];
    jpeg[0] = (byte) 0xff;
    jpeg[1] = (byte) 0xd8;
    jpeg[2] = (byte) 0xff;
    assertThat(training.offer(ByteBuffer.wrap(jpeg))).isFalse();
    assertThat(training.offer(ByteBuffer.wrap(new byte[100]))).isTrue();
  }

  @Test
  void train_similarFiles_givesADictionary() {
    DictionaryTraining training = new DictionaryTraining(3, 4096, 900_000);
    offer(training, true);
    assertThat(training.train(plain)).isNotNull();
  }

  @Test
  void train_filesWithNothingInCommon_givesNone() {
    DictionaryTraining training = new DictionaryTraining(3, 4096, 900_000);
    offer(training, false);
    assertThat(training.train(plain)).isNull();
  }

  @Test
  void file_savedAndDamaged_isLoadedOrRemoved() throws Exception {
    DictionaryTraining training = new DictionaryTraining(3, 4096, 900_000);
    offer(training, true);
    var dictionary = Objects.requireNonNull(training.train(plain));
    assertThat(DictionaryFile.load(directory)).isNull();
    assertThat(DictionaryFile.save(directory, dictionary)).isTrue();
    assertThat(Objects.requireNonNull(DictionaryFile.load(directory)).bytes())
        .isEqualTo(dictionary.bytes());
    List<Path> files = files();
    assertThat(files).hasSize(1);
    assertThat(Files.getPosixFilePermissions(files.get(0))).hasSize(2);
    byte[] bytes = Files.readAllBytes(files.get(0));
    bytes[bytes.length - 1] ^= 1;
    Files.write(files.get(0), bytes);
    assertThat(DictionaryFile.load(directory)).isNull();
    assertThat(files()).isEmpty();
  }

  @Test
  void save_placeThatIsNotThere_isNoError() {
    DictionaryTraining training = new DictionaryTraining(3, 4096, 900_000);
    offer(training, true);
    var dictionary = Objects.requireNonNull(training.train(plain));
    assertThat(DictionaryFile.save(directory.resolve("none"), dictionary)).isFalse();
    assertThat(DictionaryFile.load(directory.resolve("none"))).isNull();
  }

  private List<Path> files() throws Exception {
    List<Path> files = new ArrayList<>();
    try (var entries = Files.newDirectoryStream(directory)) {
      entries.forEach(files::add);
    }
    return files;
  }
}
