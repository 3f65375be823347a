package io.pmfs.it;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;

/** Gives files of a source POSIX access-control lists, as setfacl(1) does. */
final class AccessList {
  private static final int VERSION = 2;

  private AccessList() {}

  /**
   * Replaces the list that decides about access, and with it the mode.
   *
   * @param entries {@code u::rw u:1000:r g::r g:100:- m::r o::-}, in this order
   */
  static void set(Path file, String entries) {
    set(file, "system.posix_acl_access", entries);
  }

  /** Replaces the list that new files in a directory get. */
  static void setDefault(Path directory, String entries) {
    set(directory, "system.posix_acl_default", entries);
  }

  private static void set(Path file, String name, String entries) {
    Posix.check(Posix.setxattr(file.toString(), name, bytes(entries)));
  }

  private static byte[] bytes(String entries) {
    String[] all = entries.split(" ", -1);
    ByteBuffer out =
        ByteBuffer.allocate(Integer.BYTES + 8 * all.length).order(ByteOrder.LITTLE_ENDIAN);
    out.putInt(VERSION);
    for (String entry : all) {
      String[] parts = entry.split(":", -1);
      boolean isNamed = !parts[1].isEmpty();
      int tag =
          switch (parts[0]) {
            case "u" -> isNamed ? 2 : 1;
            case "g" -> isNamed ? 8 : 4;
            case "m" -> 0x10;
            default -> 0x20;
          };
      String rights = parts[2];
      int bits =
          (rights.contains("r") ? 4 : 0)
              | (rights.contains("w") ? 2 : 0)
              | (rights.contains("x") ? 1 : 0);
      out.putShort((short) tag).putShort((short) bits);
      out.putInt(isNamed ? Integer.parseInt(parts[1]) : -1);
    }
    return out.array();
  }
}
