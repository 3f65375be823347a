package io.pmfs.cache;

import io.pmfs.cache.SharedCopy.Waiting;
import io.pmfs.fuse.system.PassedFile;
import io.pmfs.posix.FsException;
import io.pmfs.table.StateException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongConsumer;
import java.util.zip.CRC32C;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies one file from the descriptor that a mount passed. Copies front to back: all bytes written
 * so far can be read. Completes the copy only if the source's file has not changed meanwhile.
 */
final class Copying implements Copier.Work {
  private static final Logger log = LoggerFactory.getLogger(Copying.class);

  private final SharedCopies copies;
  private final SharedCopy copy;
  private final PassedFile source;
  private final LongAdder copiedBytes;
  private final LongAdder failed;

  /**
   * Takes over the source's file.
   *
   * @param copiedBytes counts bytes read
   * @param failed counts failed copies
   */
  Copying(
      SharedCopies copies,
      SharedCopy copy,
      PassedFile source,
      LongAdder copiedBytes,
      LongAdder failed) {
    this.copies = copies;
    this.copy = copy;
    this.source = source;
    this.copiedBytes = copiedBytes;
    this.failed = failed;
  }

  @Override
  public long bytes() {
    return copy.key.size();
  }

  @Override
  public void run(ByteBuffer buffer, LongConsumer progress) {
    try (source) {
      copies.complete(copy, copy(buffer, progress)).forEach(Waiting::answer);
    } catch (IOException | FsException | StateException e) {
      log.info("cannot copy {}: {}", copy.key, e.getMessage());
      failed.increment();
      copies.fail(copy).forEach(Waiting::answer);
    }
  }

  /** Returns the checksum. */
  private int copy(ByteBuffer buffer, LongConsumer progress) throws IOException, FsException {
    CRC32C crc = new CRC32C();
    long size = copy.key.size();
    source.beginWriteBack(); // else writes through a mapping might not change the times yet
    try (FileChannel target = copies.write(copy)) {
      for (long at = 0; at < size; ) {
        buffer.clear().limit((int) Math.min(buffer.capacity(), size - at));
        int count = source.read(at, buffer);
        copiedBytes.add(count);
        if (buffer.hasRemaining()) {
          throw new IOException("the file was truncated while it was copied");
        }
        crc.update(buffer.flip());
        buffer.rewind();
        while (buffer.hasRemaining()) {
          target.write(buffer, at + buffer.position());
        }
        at += count;
        progress.accept(count);
        if (at < size) {
          copies.reached(copy, at).forEach(Waiting::answer);
        }
      }
    }
    if (!CopyKey.of(copy.key.fileSystem(), source.status()).equals(copy.key)) {
      throw new IOException("the file changed while it was copied");
    }
    return (int) crc.getValue();
  }

  @Override
  public void drop() {
    source.close();
    giveUp();
  }

  /** The copying thread notices once the source answers. */
  @Override
  public void giveUp() {
    failed.increment();
    copies.fail(copy).forEach(Waiting::answer);
  }
}
