package io.pmfs.writable;

/**
 * A data file.
 *
 * @param place index of the place that holds it
 * @param waiting announcements of it that the source does not have yet
 */
record DataRow(int place, int waiting) {
  byte[] encode() {
    return new Encoder().number(place).number(waiting).toBytes();
  }

  static DataRow decode(byte[] value) {
    Decoder in = new Decoder(value);
    return new DataRow(in.small(), in.small());
  }

  DataRow withWaiting(int next) {
    return new DataRow(place, next);
  }
}
