package io.pmfs.writable.journal;

import java.util.List;

/** A change as a row of the journal. */
public final class ChangeRow {
  private record Kind(Class<? extends Change> type, Reader reader) {
    interface Reader {
      Change read(Change.Head head, Decoder in);
    }
  }

  /** The kinds, by their numbers in a row. */
  private static final List<Kind> KINDS =
      List.of(
          new Kind(
              Change.Content.class,
              (head, in) ->
                  new Change.Content(
                      head,
                      in.isNext() ? in.at() : null,
                      in.isNext(),
                      in.number(),
                      in.number(),
                      in.attributes(),
                      in.isNext() ? in.name() : null)),
          new Kind(
              Change.MakeDirectory.class,
              (head, in) -> new Change.MakeDirectory(head, in.at(), in.attributes())),
          new Kind(
              Change.MakeSymbolicLink.class,
              (head, in) -> new Change.MakeSymbolicLink(head, in.at(), in.attributes(), in.name())),
          new Kind(
              Change.MakeNode.class,
              (head, in) -> new Change.MakeNode(head, in.at(), in.attributes())),
          new Kind(Change.Link.class, (head, in) -> new Change.Link(head, in.at())),
          new Kind(
              Change.Unlink.class, (head, in) -> new Change.Unlink(head, in.at(), in.isNext())),
          new Kind(
              Change.RemoveDirectory.class,
              (head, in) -> new Change.RemoveDirectory(head, in.at())),
          new Kind(
              Change.Rename.class,
              (head, in) ->
                  new Change.Rename(head, in.at(), in.at(), in.number(), in.isNext(), in.isNext())),
          new Kind(
              Change.SetAttributes.class,
              (head, in) -> new Change.SetAttributes(head, in.attributes(), in.small())),
          new Kind(
              Change.SetExtended.class,
              (head, in) ->
                  new Change.SetExtended(head, in.name(), in.isNext() ? in.name() : null)));

  private ChangeRow() {}

  /** All fields but the sequence number, which is the row's key. */
  public static byte[] encode(Change change) {
    int kind = 0;
    while (KINDS.get(kind).type() != change.getClass()) {
      kind++;
    }
    Encoder out =
        new Encoder()
            .number(kind)
            .number(change.inode())
            .number(Integer.toUnsignedLong(change.uid()))
            .number(Integer.toUnsignedLong(change.gid()))
            .number(change.head().madeMillis());
    change.write(out);
    return out.toBytes();
  }

  public static Change decode(long sequence, byte[] stored) {
    Decoder in = new Decoder(stored);
    Kind kind = KINDS.get(in.small());
    Change.Head head = new Change.Head(sequence, in.number(), in.small(), in.small(), in.number());
    return kind.reader().read(head, in);
  }
}
