package io.pmfs.writable;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import io.pmfs.writable.journal.Stat;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The system calls on the source and on local files. A directory is an open descriptor, a name is
 * one component below it, and an empty name is the descriptor's file itself; symbolic links are
 * never followed. Failures have the errno of the call. Safe for use by many threads.
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

  /** Opens a directory by its absolute path, in which links are followed. */
  int openRoot(Path path) throws FsException;

  /** Opens a directory below another one; the path may have slashes, and none of it is a link. */
  int openDirectory(int base, FileName path) throws FsException;

  /** Opens or creates a regular file; opening something else fails. */
  int open(int directory, FileName name, int flags, int mode) throws FsException;

  void close(int file);

  Stat status(int directory, FileName name) throws FsException;

  /** Passes all names of a directory but . and .. */
  void list(int directory, Names names) throws FsException;

  /** Receives names; the type is null if the file system does not say it. */
  interface Names {
    void accept(FileName name, long inode, @Nullable FileType type);
  }

  FileName readSymbolicLink(int directory, FileName name) throws FsException;

  /** Reads into the buffer until it is full or the file ends; returns how many bytes. */
  int read(int file, ByteBuffer destination, long offset) throws FsException;

  /** Writes all of the buffer. */
  void write(int file, ByteBuffer source, long offset) throws FsException;

  void truncate(int file, long size) throws FsException;

  void sync(int file, boolean dataOnly) throws FsException;

  /** Like fallocate(2). */
  void allocate(int file, int mode, long offset, long length) throws FsException;

  /** Like lseek(2) for data and holes: ENXIO behind the last of them. */
  long seek(int file, long offset, int whence) throws FsException;

  /** Makes one file share all blocks of the other (FICLONE); fails where this is not possible. */
  void cloneFile(int from, int to) throws FsException;

  void mkdir(int directory, FileName name, int mode) throws FsException;

  void mknod(int directory, FileName name, int mode, long device) throws FsException;

  void symlink(FileName target, int directory, FileName name) throws FsException;

  void link(int directory, FileName name, int toDirectory, FileName toName) throws FsException;

  void unlink(int directory, FileName name) throws FsException;

  void rmdir(int directory, FileName name) throws FsException;

  /** Like renameat2(2); EINVAL where the file system does not have the flag. */
  void rename(int directory, FileName name, int toDirectory, FileName toName, int flags)
      throws FsException;

  void chmod(int directory, FileName name, int mode) throws FsException;

  void chown(int directory, FileName name, int uid, int gid) throws FsException;

  void setTimes(int directory, FileName name, Instant accessTime, Instant modificationTime)
      throws FsException;

  /** Empty where the file system has none. */
  Map<FileName, byte[]> extendedAttributes(int directory, FileName name) throws FsException;

  void setExtendedAttribute(int directory, FileName name, FileName attribute, byte[] value)
      throws FsException;

  void removeExtendedAttribute(int directory, FileName name, FileName attribute) throws FsException;

  StoreStatistics statistics(int directory) throws FsException;

  /**
   * The project whose quota counts what is made in a directory (its id, if the directory hands it
   * on); 0 if there is none.
   */
  long project(int directory);

  /** How many data files a mount may have open at the same time, and leave enough for the rest. */
  int mostDataFiles();

  /** Whether a process, or a user if the process is gone, belongs to a group. */
  boolean isInGroup(int pid, int uid, int gid, int group);

  /**
   * Lets the calling thread make the calls of this object as a user, with the user's groups, until
   * the result is closed. A process without that right makes them as itself.
   */
  Acting actAs(int uid, int gid);

  /**
   * Permanently gives the calling thread a small share of the processors when there are too few.
   */
  void lowerPriority();

  /** The time in which a thread acts as another user; closing it again does nothing. */
  interface Acting extends AutoCloseable {
    @Override
    void close();
  }
}
