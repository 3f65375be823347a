/**
 * Sorted maps of bytes on a disk that may fail. Nothing else in the program knows RocksDB.
 *
 * <p><b>Start reading</b> at {@link Column} and {@link Change}, which are all that a database
 * consists of. {@link RocksFiles} opens a directory within limits, or says in one line why it
 * cannot; {@link RocksStore} is the open database, and each of its failures is a {@link
 * StoreFailure} that says whether the files are damaged. Two kinds of owner use it:
 *
 * <ul>
 *   <li>The namespace of a dataset can be read again from the source. It uses {@link RocksStore}
 *       with the columns of {@link Family} and goes on without it: {@code io.pmfs.metadata}.
 *   <li>{@link TableStore} is for what exists nowhere else, such as the journal of a writable
 *       mount. A change that cannot be written fails, and is never kept in memory only.
 * </ul>
 *
 * <p>{@link SortedTable} is no database but one file, which is written once and then only read,
 * such as the index of tar files.
 *
 * <p><b>Threads.</b> The package starts none; RocksDB has two for flushes and compaction. A caller
 * waits for the disk, and a writer also while the write buffers are full. A disk that hangs holds
 * its callers.
 *
 * <p><b>Lock order.</b> {@link TableStore} has one lock, {@code use}: shared for each call,
 * exclusive to close the database and open it again. It is held while the disk is asked.
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>The visitor of a scan calls the store: it holds {@code use} shared, and a failed write
 *       would need it exclusive. Cure: {@link TableStore.Visitor} must not use the store.
 *   <li>A full disk refuses also the changes that would make room. Cure: {@link TableStore} keeps a
 *       {@link Reserve} of 16 MiB and gives it away then. From then on changes that {@linkplain
 *       TableStore.Changes#add add} something fail, and the others are made.
 * </ol>
 *
 * <p><b>What survives</b>
 *
 * <ul>
 *   <li>Changes that were applied together are there together, or not at all. They survive the
 *       process; they survive the machine once they are synced. A database in memory has no log.
 *   <li>All columns are flushed together: if the log is cut, what is left is the whole database as
 *       it was at some earlier moment.
 *   <li>After a failed write RocksDB takes no more until it is opened again. {@link TableStore}
 *       does that at the next change, at most once a second, and reads meanwhile. {@link
 *       TableStore#openings} then differs: what was read before a failed change may not be there.
 *   <li>A wrong checksum is an error and never a wrong pair, in a database and in a {@link
 *       SortedTable}.
 * </ul>
 *
 * <p><b>What a directory is allowed to do.</b> It may hold anything. A database with columns that
 * pmfs does not know, without the file that names its tables, or of another {@linkplain
 * TableStore#open owner} is refused and left as it is; {@link StateException.Kind} says which.
 */
@NullMarked
package io.pmfs.table;

import org.jspecify.annotations.NullMarked;
