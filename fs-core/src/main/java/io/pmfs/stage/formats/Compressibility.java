package io.pmfs.stage.formats;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.pmfs.compression.SeekTable;
import io.pmfs.compression.ZstdCodec;
import io.pmfs.memory.BufferPool;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;

/**
 * Decides from a file's first available block whether to compress it. Compression must save at
 * least a tenth of the room in the tier: a file uses room in units of 4 KiB, a copy in a bundle its
 * exact size. A compressed copy must pay for itself, because the kernel can read a raw one without
 * pmfs.
 */
final class Compressibility {
  /** Files use disk space in multiples of this. */
  static final int ALLOCATION_BYTES = 4096;

  // The size of the trial: all of a short block, samples from all over a longer one.
  private static final int TRIAL_BYTES = 128 * 1024;
  private static final int PIECES = 4;
  private static final int PIECE_BYTES = TRIAL_BYTES / PIECES;

  /** Bytes at an offset that identify a file format. */
  private record Magic(int offset, String bytes) {
    static Magic hex(String hex) {
      return text(0, new String(HexFormat.of().parseHex(hex), ISO_8859_1));
    }

    static Magic text(int offset, String text) {
      return new Magic(offset, text);
    }

    boolean begins(ByteBuffer content) {
      boolean same = content.remaining() >= offset + bytes.length();
      for (int i = 0; same && i < bytes.length(); i++) {
        same = (content.get(content.position() + offset + i) & 0xff) == bytes.charAt(i);
      }
      return same;
    }
  }

  /** Formats that are compressed already. The numbers are from file(1)'s database. */
  private static final List<Magic> COMPRESSED =
      List.of(
          Magic.hex("ffd8ff"), // JPEG
          Magic.hex("89504e470d0a1a0a"), // PNG
          Magic.text(0, "GIF8"),
          Magic.text(8, "WEBP"),
          Magic.hex("0000000c4a584c20"), // JPEG XL
          Magic.hex("0000000c6a502020"), // JPEG 2000
          Magic.hex("1f8b"), // gzip
          Magic.hex("28b52ffd"), // zstd
          Magic.hex("fd377a585a00"), // xz
          Magic.text(0, "BZh"),
          Magic.hex("04224d18"), // LZ4
          Magic.hex("504b0304"), // zip: also npz, PyTorch, office documents, jar
          Magic.hex("377abcaf271c"), // 7z
          Magic.text(0, "Rar!"),
          Magic.text(4, "ftyp"), // MP4, QuickTime, HEIF, AVIF
          Magic.hex("1a45dfa3"), // Matroska, WebM
          Magic.text(0, "ID3"), // MP3
          Magic.hex("fffb"), // MP3
          Magic.text(0, "OggS"),
          Magic.text(0, "fLaC"),
          Magic.text(0, "PAR1")); // Parquet

  private Compressibility() {}

  /**
   * Whether a file shrinks enough.
   *
   * @param content the file's block with the index {@code block}
   * @param unitBytes the allocation unit of copies
   * @param scratch lends memory for the trial
   */
  static boolean isWorth(
      ZstdCodec codec,
      int block,
      ByteBuffer content,
      long fileSize,
      int unitBytes,
      BufferPool scratch) {
    if (fileSize <= unitBytes || (block == 0 && isCompressed(content))) {
      return false;
    }
    try (BufferPool.Loan loan = scratch.take(codec.maxCompressedSize(TRIAL_BYTES))) {
      return isWorth(codec, content, fileSize, unitBytes, loan.buffer());
    }
  }

  private static boolean isWorth(
      ZstdCodec codec, ByteBuffer content, long fileSize, int unitBytes, ByteBuffer trial) {
    int tried = 0;
    int compressed = 0;
    if (content.remaining() <= TRIAL_BYTES) {
      tried = content.remaining();
      compressed = compressedSize(codec, content, trial);
    } else {
      int stride = (content.remaining() - PIECE_BYTES) / (PIECES - 1);
      for (int piece = 0; piece < PIECES; piece++) {
        tried += PIECE_BYTES;
        compressed +=
            compressedSize(
                codec, content.slice(content.position() + piece * stride, PIECE_BYTES), trial);
      }
    }
    if (fileSize <= TRIAL_BYTES) {
      return 10 * taken(compressed + SeekTable.encodedSize(1), unitBytes)
          <= 9 * taken(fileSize, unitBytes);
    }
    return 10L * compressed <= 9L * tried;
  }

  /** Whether a file with this start is compressed already. */
  static boolean isCompressed(ByteBuffer start) {
    return COMPRESSED.stream().anyMatch(magic -> magic.begins(start));
  }

  private static int compressedSize(ZstdCodec codec, ByteBuffer content, ByteBuffer trial) {
    return codec.compress(content.duplicate(), trial.clear());
  }

  static long taken(long size, int unitBytes) {
    return (size + unitBytes - 1) / unitBytes * unitBytes;
  }
}
