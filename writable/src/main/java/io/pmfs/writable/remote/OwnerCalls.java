package io.pmfs.writable.remote;

import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.WritableFileSystem;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The operations of a writable mount that only forward a request to its owner. */
abstract class OwnerCalls implements WritableFileSystem {
  final Owner owner;

  OwnerCalls(Owner owner) {
    this.owner = owner;
  }

  static MessageWriter with() {
    return Message.request();
  }

  static MessageWriter with(long inode, long handle) {
    return with().number(inode).number(handle);
  }

  final <T> T ask(OwnerRequest request, MessageWriter values, MessageReader.Reading<T> result)
      throws FsException {
    return owner.ask(request, values, result);
  }

  final void send(OwnerRequest request, MessageWriter values) throws FsException {
    owner.ask(request, values, Owner.NOTHING);
  }

  // ---- lookups

  @Override
  public void list(long directory, long position, EntryConsumer entries) throws FsException {
    long from = position;
    while (true) {
      MessageWriter values = with().number(directory).number(from);
      List<Entry> answer = ask(OwnerRequest.LIST, values, in -> in.list(MessageReader::entry));
      for (Entry entry : answer) {
        if (!entry.name().isEntry()) {
          throw new FsException(Errno.EIO, "the owner has sent a malformed name");
        }
        if (!entries.accept(entry)) {
          return;
        }
        from = entry.position();
      }
      if (answer.size() < Message.LISTED) {
        return;
      }
    }
  }

  @Override
  public long parent(long directory) throws FsException {
    return ask(OwnerRequest.PARENT, with().number(directory), MessageReader::number);
  }

  @Override
  public FileName readSymbolicLink(long inode) throws FsException {
    return ask(OwnerRequest.READ_SYMBOLIC_LINK, with().number(inode), MessageReader::name);
  }

  @Override
  public byte @Nullable [] extendedAttribute(long inode, FileName name) throws FsException {
    return ask(
            OwnerRequest.EXTENDED_ATTRIBUTE,
            with().number(inode).name(name),
            in -> in.optional(MessageReader::bytes))
        .orElse(null);
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(long inode) throws FsException {
    return ask(OwnerRequest.EXTENDED_ATTRIBUTES, with().number(inode), MessageReader::extended);
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    return ask(OwnerRequest.STATISTICS, with(), MessageReader::statistics);
  }

  // ---- changes of names

  @Override
  public Node mkdir(long directory, FileName name, int mode, Caller caller) throws FsException {
    MessageWriter values = with().at(directory, name).small(mode).caller(caller);
    return ask(OwnerRequest.MKDIR, values, MessageReader::node);
  }

  @Override
  public Node mknod(long directory, FileName name, int mode, long device, Caller caller)
      throws FsException {
    MessageWriter values = with().at(directory, name).small(mode).number(device).caller(caller);
    return ask(OwnerRequest.MKNOD, values, MessageReader::node);
  }

  @Override
  public Node symlink(long directory, FileName name, FileName target, Caller caller)
      throws FsException {
    MessageWriter values = with().at(directory, name).name(target).caller(caller);
    return ask(OwnerRequest.SYMLINK, values, MessageReader::node);
  }

  @Override
  public void unlink(long directory, FileName name, Caller caller) throws FsException {
    send(OwnerRequest.UNLINK, with().at(directory, name).caller(caller));
  }

  @Override
  public void rmdir(long directory, FileName name, Caller caller) throws FsException {
    send(OwnerRequest.RMDIR, with().at(directory, name).caller(caller));
  }

  @Override
  public void rename(
      long directory, FileName name, long newDirectory, FileName newName, int flags, Caller caller)
      throws FsException {
    send(
        OwnerRequest.RENAME,
        with().at(directory, name).at(newDirectory, newName).small(flags).caller(caller));
  }

  // ---- open files

  static void pass(ByteBuffer bytes, ReadSink sink) throws FsException {
    sink.expect(bytes.remaining());
    if (bytes.hasRemaining()) {
      try {
        sink.accept(new ReadResult.Bytes(bytes));
      } catch (IOException e) {
        throw new FsException(Errno.EIO, "answering a read", e);
      }
    }
  }

  @Override
  public void fsync(long inode, long handle, boolean dataOnly, Caller caller) throws FsException {
    send(OwnerRequest.FSYNC, with(inode, handle).flag(dataOnly).caller(caller));
  }

  @Override
  public void fsyncDirectory(long inode, Caller caller) throws FsException {
    send(OwnerRequest.FSYNC_DIRECTORY, with().number(inode).caller(caller));
  }

  @Override
  public long seek(long inode, long handle, long offset, int whence) throws FsException {
    MessageWriter values = with(inode, handle).number(offset).small(whence);
    return ask(OwnerRequest.SEEK, values, MessageReader::number);
  }

  // ---- attributes

  @Override
  public void setExtendedAttribute(
      long inode, FileName name, byte[] value, int flags, Caller caller) throws FsException {
    MessageWriter values = with().number(inode).name(name).bytes(value).small(flags);
    send(OwnerRequest.SET_EXTENDED_ATTRIBUTE, values.caller(caller));
  }

  @Override
  public void removeExtendedAttribute(long inode, FileName name, Caller caller) throws FsException {
    send(OwnerRequest.REMOVE_EXTENDED_ATTRIBUTE, with().number(inode).name(name).caller(caller));
  }

  // ---- the way to the source

  @Override
  public DrainStatus acknowledge() throws FsException {
    return ask(OwnerRequest.ACKNOWLEDGE, with(), MessageReader::status);
  }

  @Override
  public List<String> retry(FileName path) throws FsException {
    return ask(OwnerRequest.RETRY, with().name(path), in -> in.list(MessageReader::text));
  }

  @Override
  public List<String> drop(FileName path) throws FsException {
    return ask(OwnerRequest.DROP, with().name(path), in -> in.list(MessageReader::text));
  }
}
