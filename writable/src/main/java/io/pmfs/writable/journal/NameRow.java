package io.pmfs.writable.journal;

import io.pmfs.metadata.FileType;

/**
 * A name that differs from the source's, now or once the source has more changes.
 *
 * @param inode its number; 0 if the name was removed
 * @param type of the inode; meaningless if the name was removed
 * @param change sequence number of the last change of the name in the journal; 0 if there is none
 * @param announced whether that change already includes this row; if not, the file was created
 *     since and is not in the journal yet
 */
public record NameRow(long inode, FileType type, long change, boolean announced) {
  public static NameRow removed(long change) {
    return new NameRow(0, FileType.REGULAR, change, true);
  }

  public boolean isRemoved() {
    return inode == 0;
  }

  public byte[] encode() {
    return new Encoder()
        .number(inode)
        .number(type.number())
        .number(change)
        .number(announced ? 1 : 0)
        .toBytes();
  }

  public static NameRow decode(byte[] value) {
    Decoder in = new Decoder(value);
    return new NameRow(in.number(), FileType.ofNumber(in.small()), in.number(), in.number() != 0);
  }
}
