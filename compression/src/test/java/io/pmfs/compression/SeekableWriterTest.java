package io.pmfs.compression;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class SeekableWriterTest {
  private static final int FRAME = 1000;

  @TempDir Path directory;
  private final ZstdCodec codec = new ZstdCodec(3);
  private final FrameReader reader = new FrameReader();

  @AfterEach
  void close() {
    codec.close();
    reader.close();
  }

  private byte[] written(byte[] content, int pieceBytes) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (SeekableWriter writer = new SeekableWriter(out, codec, FRAME)) {
      for (int at = 0; at < content.length; at += pieceBytes) {
        writer.write(content, at, Math.min(pieceBytes, content.length - at));
      }
      SeekTable table = writer.finish();
      assertThat(table).isEqualTo(writer.finish());
      assertThat(table.contentSize()).isEqualTo(content.length);
    }
    return out.toByteArray();
  }

  private byte[] content(byte[] file) throws CodecException {
    SeekTable table = table(file);
    ByteBuffer content = ByteBuffer.allocateDirect(Math.toIntExact(table.contentSize()));
    for (int frame = 0; frame < table.frameCount(); frame++) {
      int start = (int) table.compressedOffset(frame);
      byte[] bytes = Arrays.copyOfRange(file, start, start + (int) table.compressedSize(frame));
      reader.decompress(table, frame, CodecContract.direct(bytes), content);
    }
    return CodecContract.bytes(content.flip());
  }

  private static SeekTable table(byte[] file) throws CodecException {
    return SeekTable.load(
        file.length,
        ByteBuffer.allocateDirect(SeekTable.READ_BYTES),
        (offset, destination) -> destination.put(file, (int) offset, destination.remaining()));
  }

  @Test
  void write_anySizeInAnyPieces_comesBack() throws Exception {
    for (int size : new int[] {0, 1, FRAME - 1, FRAME, FRAME + 1, 3 * FRAME, 20_003}) {
      byte[] content = CodecContract.compressible(size);
      for (int piece : new int[] {1, 7, FRAME, 5 * FRAME}) {
        byte[] file = written(content, piece);
        assertThat(content(file)).isEqualTo(content);
        assertThat(table(file).frameCount()).isEqualTo((size + FRAME - 1) / FRAME);
      }
    }
  }

  @Test
  void endFrame_inTheMiddle_beginsAFrame() throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    SeekableWriter writer = new SeekableWriter(out, codec, FRAME);
    writer.write(1);
    writer.endFrame();
    writer.endFrame();
    writer.write(new byte[FRAME]);
    writer.endFrame();
    writer.write(2);
    SeekTable table = writer.finish();
    assertThat(table.frameCount()).isEqualTo(3);
    assertThat(table.contentOffset(1)).isEqualTo(1);
    assertThat(table.contentOffset(2)).isEqualTo(FRAME + 1);
    assertThat(content(out.toByteArray())).hasSize(FRAME + 2).endsWith(2);
  }

  @Test
  void write_afterFinish_isRefused() throws IOException {
    SeekableWriter writer = new SeekableWriter(new ByteArrayOutputStream(), codec, FRAME);
    writer.finish();
    assertThatThrownBy(() -> writer.write(1)).isInstanceOf(IOException.class);
  }

  @Test
  void close_withoutFinish_leavesNoTable() throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (SeekableWriter writer = new SeekableWriter(out, codec, FRAME)) {
      writer.write(new byte[5 * FRAME]);
    }
    assertThatThrownBy(() -> table(out.toByteArray())).isInstanceOf(CodecException.class);
  }

  @Test
  void decompress_tableLiesAboutContent_isRefused() throws Exception {
    byte[] file = written(CodecContract.compressible(FRAME), FRAME);
    int size = (int) table(file).compressedSize(0);
    ByteBuffer source = CodecContract.direct(Arrays.copyOf(file, size));
    ByteBuffer target = ByteBuffer.allocateDirect(2 * FRAME);
    for (int lie : new int[] {0, FRAME - 1, FRAME + 1}) {
      SeekTable table = SeekTable.of(new int[] {size}, new int[] {lie});
      assertThatThrownBy(() -> reader.decompress(table, 0, source, target))
          .isInstanceOf(CodecException.class);
      assertThat(source.position()).isZero();
      assertThat(target.position()).isZero();
    }
  }

  @Test
  void decompress_wrongBytesGiven_isRefused() throws Exception {
    SeekTable table = table(written(CodecContract.compressible(FRAME), FRAME));
    assertThatThrownBy(
            () ->
                reader.decompress(
                    table, 0, ByteBuffer.allocateDirect(3), ByteBuffer.allocateDirect(FRAME)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void decompress_frameWithoutChecksum_isTaken() throws Exception {
    // Many programs write no checksum; this is the zstd program's frame for three bytes.
    byte[] frame = {0x28, (byte) 0xb5, 0x2f, (byte) 0xfd, 0x20, 3, 0x19, 0, 0, 'a', 'b', 'c'};
    SeekTable table = SeekTable.of(new int[] {frame.length}, new int[] {3});
    ByteBuffer target = ByteBuffer.allocateDirect(3);
    reader.decompress(table, 0, CodecContract.direct(frame), target);
    assertThat(CodecContract.bytes(target.flip())).containsExactly('a', 'b', 'c');
  }

  @Test
  void zstdProgram_ofWhatWasWritten_givesTheContent() throws Exception {
    ZstdProgram.assume();
    byte[] content = CodecContract.compressible(100_003);
    Path file = directory.resolve("content.zst");
    Files.write(file, written(content, 4096));
    ZstdProgram.run("-q", "-t", file.toString());
    ZstdProgram.run("-q", "-d", file.toString());
    assertThat(Files.readAllBytes(directory.resolve("content"))).isEqualTo(content);
  }
}
