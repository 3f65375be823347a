package io.pmfs.fuse;

import static io.pmfs.fuse.protocol.KernelReply.BODY;

import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.KernelReply;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.FsException;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Entry;
import io.pmfs.writable.WritableFileSystem.Node;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** The answer to one READDIR or READDIRPLUS: as many entries of a directory as fit. */
final class WritableListing {
  /** Instead of a validity: the kernel requested names only. */
  static final long NO_ENTRIES = -1;

  /** Offsets of entries start after . and .. . */
  private static final int DOTS = 2;

  private static final FileName DOT = FileName.of(".");
  private static final FileName DOT_DOT = FileName.of("..");

  private final WritableFileSystem fileSystem;
  private final KernelReply reply;
  private final ByteBuffer out;
  private final int limit;
  private final long validSeconds;
  private final int prefix;
  private int size;

  /**
   * An empty answer.
   *
   * @param limit in bytes
   * @param validSeconds how long the kernel may keep the entries; {@link #NO_ENTRIES} to READDIR
   */
  WritableListing(WritableFileSystem fileSystem, KernelReply reply, int limit, long validSeconds) {
    this.fileSystem = fileSystem;
    this.reply = reply;
    this.out = reply.body(limit);
    this.limit = limit;
    this.validSeconds = validSeconds;
    this.prefix = validSeconds == NO_ENTRIES ? 0 : KernelProtocol.ENTRY_OUT_SIZE;
  }

  /** Sends the entries after an offset. */
  void send(long directory, long offset) throws FsException {
    boolean hasRoom =
        (offset >= 1 || addDots(directory, DOT, 1))
            && (offset >= DOTS || addDots(fileSystem.parent(directory), DOT_DOT, DOTS));
    if (hasRoom) {
      fileSystem.list(directory, Math.max(0, offset - DOTS), entry -> add(directory, entry));
    }
    reply.send(size);
  }

  /** In READDIRPLUS, a node number of zero means that the entry is not a lookup. */
  private boolean addDots(long inode, FileName name, long nextOffset) {
    if (!fits(name)) {
      return false;
    }
    KernelProtocol.zero(out, BODY + size, prefix);
    put(inode, name, FileType.DIRECTORY, nextOffset);
    return true;
  }

  private boolean fits(FileName name) {
    return size + prefix + KernelProtocol.direntSize(name.size()) <= limit;
  }

  private boolean add(long directory, Entry entry) {
    if (!fits(entry.name())) {
      return false;
    }
    Node node = prefix > 0 ? putEntry(directory, entry.name()) : null;
    long position = entry.position() + DOTS;
    if (node == null) {
      put(entry.inode(), entry.name(), entry.type(), position);
    } else {
      put(node.inode(), entry.name(), node.attributes().type(), position);
    }
    return true;
  }

  /**
   * Puts what a lookup finds, as a listing of the source may lack the type, and its number does not
   * say in which file system the file is. Returns null if nothing was found.
   */
  private @Nullable Node putEntry(long directory, FileName name) {
    try {
      Node node = fileSystem.lookup(directory, name);
      if (node != null) {
        KernelProtocol.putEntry(out, BODY + size, node.inode(), node.attributes(), validSeconds);
        return node;
      }
    } catch (FsException e) {
      // List the name anyway; a lookup returns the error.
    }
    KernelProtocol.zero(out, BODY + size, prefix);
    return null;
  }

  private void put(long inode, FileName name, FileType type, long nextOffset) {
    KernelProtocol.putDirent(out, BODY + size + prefix, inode, nextOffset, type.number(), name);
    size += prefix + KernelProtocol.direntSize(name.size());
  }
}
