package io.pmfs.writable;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import io.pmfs.writable.journal.Stat;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The system calls on the source and on local files. A directory is an open descriptor and a name
 * is one component below it; an empty name means the descriptor's file itself. Symbolic links are
 * never followed. Failures carry the errno of the call. Thread-safe.
 */
public interface OutputCalls {
  int O_RDONLY = 0;
  int O_WRONLY = 1;
  int O_RDWR = 2;
  int O_CREAT = 0100;
  int O_EXCL = 0200;
  int O_TRUNC = 01000;
  int O_APPEND = 02000;

  int RENAME_NOREPLACE = 1;
  int RENAME_EXCHANGE = 2;

  int XATTR_CREATE = 1;
  int XATTR_REPLACE = 2;

  int FALLOC_KEEP_SIZE = 1;
  int FALLOC_PUNCH_HOLE = 2;
  int FALLOC_ZERO_RANGE = 16;

  int SEEK_DATA = 3;
  int SEEK_HOLE = 4;

  /** Opens a directory by its absolute path; symbolic links are followed. */
  int openRoot(Path path) throws FsException;

  /** Opens a directory below another one by a relative path without symbolic links. */
  int openDirectory(int base, FileName path) throws FsException;

  /**
   * Opens a file of any kind only to say which one is meant: for calls on its attributes, and as a
   * directory in which the empty name is the file.
   */
  int openNode(int directory, FileName name) throws FsException;

  /** Opens or creates a regular file; opening something else fails. */
  int open(int directory, FileName name, int flags, int mode) throws FsException;

  void close(int file);

  Stat status(int directory, FileName name) throws FsException;

  /** What is known of the file system of an open file. */
  FileSystem fileSystem(int file) throws FsException;

  /**
   * A file system.
   *
   * @param names it has at least one of them as long as it exists, also when it is mounted again
   *     with another device number; those first that the fewest others have. Empty if only its
   *     device number is known.
   * @param mounted device numbers of file systems that are mounted now, except those of subvolumes
   */
  record FileSystem(List<String> names, Set<Long> mounted) {
    public FileSystem {
      names = List.copyOf(names);
      mounted = Set.copyOf(mounted);
    }
  }

  /** Passes all names of a directory but . and .. */
  void list(int directory, Names names) throws FsException;

  /** Receives names; the type is null if the file system does not report it. */
  interface Names {
    void accept(FileName name, long inode, @Nullable FileType type);
  }

  FileName readSymbolicLink(int directory, FileName name) throws FsException;

  /** Reads until the buffer is full or the file ends; returns the number of bytes. */
  int read(int file, ByteBuffer destination, long offset) throws FsException;

  /** Writes all of the buffer. */
  void write(int file, ByteBuffer source, long offset) throws FsException;

  void truncate(int file, long size) throws FsException;

  void sync(int file, boolean dataOnly) throws FsException;

  /** Has the disk begin to write what was written to a file; says nothing of failures. */
  void beginWriteBack(int file);

  void allocate(int file, int mode, long offset, long length) throws FsException;

  /** Like lseek(2) with SEEK_DATA and SEEK_HOLE: ENXIO past the last one. */
  long seek(int file, long offset, int whence) throws FsException;

  /** Makes one file share all blocks of another (FICLONE); fails where that is not supported. */
  void cloneFile(int from, int to) throws FsException;

  void mkdir(int directory, FileName name, int mode) throws FsException;

  void mknod(int directory, FileName name, int mode, long device) throws FsException;

  void symlink(FileName target, int directory, FileName name) throws FsException;

  void link(int directory, FileName name, int toDirectory, FileName toName) throws FsException;

  void unlink(int directory, FileName name) throws FsException;

  void rmdir(int directory, FileName name) throws FsException;

  /** Like renameat2(2); EINVAL if the file system does not support the flag. */
  void rename(int directory, FileName name, int toDirectory, FileName toName, int flags)
      throws FsException;

  // Attributes are those of an open file: another program may give its name to another file.

  void chmod(int file, int mode) throws FsException;

  void chown(int file, int uid, int gid) throws FsException;

  void setTimes(int file, Instant accessTime, Instant modificationTime) throws FsException;

  /** All extended attributes that may be read; empty if the file system has none. */
  Map<FileName, byte[]> extendedAttributes(int file) throws FsException;

  /** All extended attributes; EACCES or EPERM if one may not be read. */
  Map<FileName, byte[]> extendedAttributesToCopy(int file) throws FsException;

  void setExtendedAttribute(int file, FileName attribute, byte[] value) throws FsException;

  void removeExtendedAttribute(int file, FileName attribute) throws FsException;

  StoreStatistics statistics(int directory) throws FsException;

  /**
   * The project whose quota counts new files in a directory (its id if the directory passes it on);
   * 0 if there is none.
   */
  long project(int directory);

  /** How many data files a mount may keep open; leaves enough descriptors for the rest. */
  int mostDataFiles();

  /** Whether a process, or a user if the process is gone, belongs to a group. */
  boolean isInGroup(int pid, int uid, int gid, int group);

  /**
   * Makes the calling thread act as a user, with the user's groups, until the result is closed.
   * Without that privilege, calls are made as the daemon's own user.
   */
  Acting actAs(int uid, int gid);

  /** Permanently lowers the calling thread's share of the processors. */
  void lowerPriority();

  /** The scope in which a thread acts as another user; closing it again does nothing. */
  interface Acting extends AutoCloseable {
    @Override
    void close();
  }
}
