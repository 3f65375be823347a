package io.pmfs.writable.remote;

import io.pmfs.posix.FsException;
import io.pmfs.writable.WritableFileSystem.Caller;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.regex.Pattern;
import java.util.zip.CRC32C;

/** Requests and answers between the nodes of a writable mount (docs/formats.md, Peers). */
final class Message {
  /**
   * Version of the message format: a checksum over samples of all messages, so that nodes with
   * different formats reject each other. MessageTest computes it.
   */
  static final int VERSION = -1918746637;

  /** Limit of entries in one listing. */
  static final int LISTED = 1024;

  private static final int NODE_AT = Integer.BYTES;
  private static final int ERA_AT = NODE_AT + Integer.BYTES;

  /** Offset of the kernel's request number in the head. */
  static final int UNIQUE_AT = ERA_AT + Long.BYTES;

  private static final int NUMBER_AT = UNIQUE_AT + Long.BYTES;
  private static final int SLOT_AT = NUMBER_AT + Long.BYTES;
  static final int HEAD_BYTES = SLOT_AT + Integer.BYTES;

  private Message() {}

  // ---- requests

  /**
   * Starts a request.
   *
   * @param node the number of the node's session; 0 before it has joined
   * @param era a number that grows whenever the node gives up a request
   * @param unique the number of the kernel's request; 0 if the request is idempotent
   * @param number the node's number of this request, by which it can be interrupted; larger than
   *     those of earlier ones
   * @param slot which no other request of the node has until this one is answered or given up
   */
  record Head(int version, int node, long era, long unique, long number, int slot) {
    static final Head NONE = new Head(0, 0, 0, 0, 0, 0);

    boolean isOurVersion() {
      return version == VERSION;
    }

    /** The number of the kernel's request among those of all nodes; 0 if it is idempotent. */
    long key() {
      return new Caller(unique, 0, 0, 0).on(node).unique();
    }
  }

  /** A request without values yet. */
  static MessageWriter request() {
    return new MessageWriter().small(VERSION).small(0).number(0).number(0).number(0).small(0);
  }

  static void from(int node, long era, long number, int slot, byte[] request) {
    ByteBuffer.wrap(request)
        .putInt(NODE_AT, node)
        .putLong(ERA_AT, era)
        .putLong(NUMBER_AT, number)
        .putInt(SLOT_AT, slot);
  }

  /** Gives a request the number by which it is made once. */
  static void once(long unique, byte[] request) {
    ByteBuffer.wrap(request).putLong(UNIQUE_AT, unique);
  }

  /**
   * The answer to a request to join.
   *
   * @param node the number of the node's session
   * @param mount the id of the owner's state
   */
  record Joined(int node, String mount) {
    private static final Pattern MOUNT = Pattern.compile("[0-9a-zA-Z-]{1,64}");

    /** The id becomes part of a directory's name, so it is checked. */
    Joined {
      if (!MOUNT.matcher(mount).matches()) {
        throw new IllegalArgumentException("not the id of a mount");
      }
    }
  }

  // ---- answers

  /** How an answer begins. */
  enum Kind {
    RESULT(0),
    FAILURE(1),
    /** The owner does not know the node, which must join and ask again. */
    NOT_JOINED(2),
    /** The owner runs another version of pmfs. */
    OTHER_VERSION(3),
    /** The node sent later requests after it had given up this one, or another of its time. */
    GIVEN_UP(4);

    final int number;

    Kind(int number) {
      this.number = number;
    }
  }

  /** An answer without values yet. */
  static MessageWriter answer(Kind kind) {
    return new MessageWriter().small(0).octet(kind.number);
  }

  /** The bytes of an answer, with their checksum. */
  static byte[] sealed(MessageWriter answer) {
    byte[] bytes = answer.toBytes();
    ByteBuffer.wrap(bytes).putInt(0, sum(bytes));
    return bytes;
  }

  static byte[] failure(FsException failure) {
    return sealed(answer(Kind.FAILURE).failure(failure));
  }

  private static int sum(byte[] answer) {
    CRC32C sum = new CRC32C();
    sum.update(answer, Integer.BYTES, answer.length - Integer.BYTES);
    return (int) sum.getValue();
  }

  record Answer(Kind kind, MessageReader in) {
    /**
     * Reads the beginning.
     *
     * @throws IOException if the bytes were damaged on the way
     */
    static Answer of(byte[] bytes) throws IOException {
      MessageReader in = new MessageReader(bytes);
      if (in.small() != sum(bytes)) {
        throw new IOException("the answer does not match its checksum");
      }
      int number = in.octet();
      for (Kind kind : Kind.values()) {
        if (kind.number == number) {
          return new Answer(kind, in);
        }
      }
      throw new IOException("unknown kind of answer");
    }
  }
}
