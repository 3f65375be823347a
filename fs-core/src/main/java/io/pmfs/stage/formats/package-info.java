/**
 * How a copy is stored (raw or compressed, alone or in a bundle), and how its blocks are written,
 * checked and read. Handles one copy at a time, and knows neither names nor the order of tiers.
 *
 * <p><b>Start reading</b> at {@link CopyFormat}, which chooses how new copies of a tier are stored
 * and opens existing ones of any format. {@link BlockWriter} writes a copy: the first block that
 * arrives decides by {@link Compressibility} whether it is raw or a {@link FrameWriter} compresses
 * it. {@link RawCopy} and {@link CompressedCopy} are open copies. {@link Blocks} are the unit of
 * fetching and of checksums, {@link Frames} that of compression.
 *
 * <p><b>What must hold.</b>
 *
 * <ul>
 *   <li>No byte leaves an open copy before its block or frame matched a checksum. A copy that does
 *       not match throws {@link MismatchException}, and its caller drops the copy.
 *   <li>Blocks are written in any order by several threads, but none during {@code commit}.
 *   <li>{@link DictionaryTraining} runs once for a tier, when enough small files were seen. Copies
 *       made before have no dictionary; they stay as they are. A damaged {@link DictionaryFile}
 *       makes the copies that need it missing, not wrong.
 * </ul>
 *
 * <p><b>Locks.</b> The monitor of a {@link BlockWriter} is held while it chooses the format, and
 * that of a {@link RawCopy} while a block is read and compared: other readers of that block wait.
 * Dictionaries are trained on the executor that {@link CopyFormat} received. The order of all locks
 * is in {@code io.pmfs.stage}.
 */
@NullMarked
package io.pmfs.stage.formats;

import org.jspecify.annotations.NullMarked;
