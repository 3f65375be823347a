package io.pmfs.compression;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A codec with a dictionary: the contract, and the gain. */
final class DictionaryTest extends CodecContract {
  private static final Dictionary DICTIONARY = trained(1);

  @TempDir Path directory;

  @Override
  protected ZstdCodec create() {
    return new ZstdCodec(3, DICTIONARY);
  }

  private static byte[] sample(Random random) {
    StringBuilder json = new StringBuilder("{\"annotations\": [");
    for (int i = 0; i < 20; i++) {
      json.append("{\"category_id\": ").append(random.nextInt(90));
      json.append(", \"iscrowd\": 0, \"bounding_box\": [").append(random.nextInt(640)).append("]}");
    }
    return json.append("]}").toString().getBytes(UTF_8);
  }

  private static Dictionary trained(long seed) {
    Random random = new Random(seed);
    List<byte[]> samples = new ArrayList<>();
    for (int i = 0; i < 500; i++) {
      samples.add(sample(random));
    }
    Dictionary dictionary = Dictionary.train(samples, 8192, 3);
    if (dictionary == null) {
      throw new AssertionError("no dictionary");
    }
    return dictionary;
  }

  @Test
  void compress_similarFile_takesLessThanWithout() {
    byte[] content = sample(new Random(42));
    int with = compress(content).remaining();
    try (ZstdCodec plain = new ZstdCodec(3)) {
      ByteBuffer target = ByteBuffer.allocateDirect(plain.maxCompressedSize(content.length));
      assertThat(with).isLessThan(plain.compress(direct(content), target) * 3 / 4);
    }
    assertThat(codec.number()).isEqualTo(2);
  }

  @Test
  void decompress_otherOrNoDictionary_isSeen() {
    byte[] content = sample(new Random(42));
    ByteBuffer compressed = compress(content);
    ByteBuffer target = ByteBuffer.allocateDirect(content.length);
    try (ZstdCodec plain = new ZstdCodec(3);
        ZstdCodec other = new ZstdCodec(3, trained(2))) {
      assertThatThrownBy(() -> plain.decompress(compressed, target))
          .isInstanceOf(CodecException.class);
      assertThatThrownBy(() -> other.decompress(compressed, target))
          .isInstanceOf(CodecException.class);
    }
  }

  @Test
  void of_whatWasTrained_isTheSame() {
    assertThat(Dictionary.of(DICTIONARY.bytes()))
        .extracting(Dictionary::bytes)
        .isEqualTo(DICTIONARY.bytes());
    assertThat(Dictionary.of(new byte[0])).isNull();
    assertThat(Dictionary.of(new byte[100])).isNull();
  }

  @Test
  void train_tooFewSamples_givesNone() {
    assertThat(Dictionary.train(List.of(new byte[] {1, 2, 3}), 8192, 3)).isNull();
    assertThat(Dictionary.train(List.of(), 8192, 3)).isNull();
  }

  @Test
  void zstdProgram_withTheDictionary_bothWaysAgrees() throws Exception {
    ZstdProgram.assume();
    byte[] content = sample(new Random(42));
    Path dictionary = Files.write(directory.resolve("dictionary"), DICTIONARY.bytes());
    Path file = Files.write(directory.resolve("ours.zst"), bytes(compress(content)));
    ZstdProgram.run("-q", "-D", dictionary.toString(), "-d", file.toString());
    Path ours = directory.resolve("ours");
    assertThat(Files.readAllBytes(ours)).isEqualTo(content);
    Files.delete(file);
    ZstdProgram.run("-q", "--check", "-D", dictionary.toString(), ours.toString());
    ByteBuffer target = ByteBuffer.allocateDirect(content.length);
    codec.decompress(direct(Files.readAllBytes(file)), target);
    assertThat(bytes(target.flip())).isEqualTo(content);
  }
}
