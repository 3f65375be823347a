/**
 * Bytes by key in RocksDB, with the failures of its disk. {@link io.pmfs.table.RocksStore} is the
 * database of a namespace, {@link io.pmfs.table.TableStore} that of one owner who keeps everything
 * on disk, {@link io.pmfs.table.SortedTable} one that is written once.
 */
@NullMarked
package io.pmfs.table;

import org.jspecify.annotations.NullMarked;
