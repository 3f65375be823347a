package io.pmfs.writable.journal;

/**
 * A data file.
 *
 * @param place index of the place that holds it
 * @param waiting its announcements that the source lacks
 */
public record DataRow(int place, int waiting) {
  public byte[] encode() {
    return new Encoder().number(place).number(waiting).toBytes();
  }

  public static DataRow decode(byte[] value) {
    Decoder in = new Decoder(value);
    return new DataRow(in.small(), in.small());
  }

  public DataRow withWaiting(int next) {
    return new DataRow(place, next);
  }
}
