package io.pmfs.writable.journal;

import io.pmfs.posix.FsException;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * What a step at the source is about to do, or has done. For a content it is synced before the
 * step, so that its own files can be distinguished from those of other programs.
 *
 * @param directory of the temporary file, or of the changed names
 * @param mark what is done to the file in place
 * @param inode of the temporary file at the source, or of the new node; 0 while there is none
 * @param birth when it was created; the epoch if the file system does not say
 * @param left the file that is changed in place, as an attempt that failed left it; null while one
 *     is made, or if nothing is known of it
 */
public record Intent(long directory, Mark mark, long inode, Instant birth, @Nullable Stat left) {
  public enum Mark {
    NOTHING(0),
    OVERWRITES(1),
    APPENDS(2),

    /** The change was made and recorded; only repeatable calls remain. */
    MADE(3);

    public final int number;

    Mark(int number) {
      this.number = number;
    }

    public static Mark of(int number) {
      return switch (number) {
        case 1 -> OVERWRITES;
        case 2 -> APPENDS;
        case 3 -> MADE;
        default -> NOTHING;
      };
    }
  }

  public Intent(long directory, Mark mark) {
    this(directory, mark, 0, Instant.EPOCH, null);
  }

  public static @Nullable Intent of(State state, Change.Content change) throws FsException {
    return of(state, change.sequence());
  }

  public static @Nullable Intent of(State state, long sequence) throws FsException {
    byte[] row = state.get(Tables.INTENTS, Tables.key(sequence));
    return row == null ? null : decode(row);
  }

  /** Whether a change was made and must still be completed. */
  public static boolean isMade(State state, Change change) throws FsException {
    Intent intent = of(state, change.sequence());
    return intent != null && intent.mark() == Mark.MADE;
  }

  /** Whether the temporary file has become the file. */
  public boolean isOf(Stat there) {
    return inode != 0 && inode == there.inode() && birth.equals(there.birth());
  }

  public Intent at(long other) {
    return new Intent(other, mark, inode, birth, left);
  }

  public Intent with(Mark next) {
    return new Intent(directory, next, inode, birth, left);
  }

  public Intent with(Stat made) {
    return new Intent(directory, mark, made.inode(), made.birth(), left);
  }

  public Intent withLeft(@Nullable Stat file) {
    return new Intent(directory, mark, inode, birth, file);
  }

  public byte[] encode() {
    Encoder out = new Encoder().number(directory).number(mark.number).number(inode).time(birth);
    Stat file = left;
    return (file == null ? out : out.number(file.protection().bits()).stat(file)).toBytes();
  }

  public static Intent decode(byte[] row) {
    Decoder in = new Decoder(row);
    return new Intent(
        in.number(),
        Mark.of(in.small()),
        in.number(),
        in.time(),
        in.hasMore() ? in.stat(Protection.of(in.small())) : null);
  }
}
