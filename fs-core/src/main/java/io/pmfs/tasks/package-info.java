/**
 * Tasks over many files of a mounted dataset: staging, prefetching, checking, verifying and
 * evicting, one task at a time.
 *
 * <p><b>Start reading</b> at {@link FileTasks}, {@link TaskRequest} and {@link FileTask}: how a
 * task is started, what it can do, and what can be said of it. {@link DatasetTasks} makes a {@link
 * RunningTask} of a request (counts, findings, threads, end) and the work that it runs:
 *
 * <ul>
 *   <li>{@link StageWork}, {@link CheckWork}, {@link VerifyWork} and {@link EvictWork} get their
 *       files from {@link RequestedFiles}. That looks up the paths, counts what is below them ahead
 *       of the work, and walks ({@link Walk}) in the order of the request into a {@link FileQueue},
 *       from which threads take files. If the source consists of sequences, {@link SequencePass}
 *       stages them first.
 *   <li>{@link PrefetchWork} reads its order by an {@link OrderReader} and keeps a {@link
 *       PrefetchWindow} of it staged, to which the file system reports reads.
 * </ul>
 *
 * <p>{@link Tree} is the dataset's names as a task sees them, and {@link TaskSource} is the source
 * at the task's pace. Copies are made by {@link io.pmfs.stage.Staging}.
 *
 * <p><b>Threads.</b> {@link RunningTask} starts all: {@code task-1} runs the work and waits for the
 * others, {@code find-N} look up paths, {@code count-N} count, {@code walk-1} walks, {@code file-N}
 * work on files, {@code sequence-N} read sequences. {@code look-N} ask the source for attributes
 * and belong to {@link TaskSource}. They end with the work. What one of them throws ends the task
 * as failed. After {@link FileTask#cancel} the task waits two seconds for its threads; one that the
 * source holds is left behind, and returns when the source answers. If no thread can be started,
 * the thread that wanted them does their work; only a prefetch fails then.
 *
 * <p><b>Locks</b> are the monitors of single objects and innermost; {@link Findings} writes a file
 * with its own held. Readers call {@link PrefetchWindow} during each read, so it calls nothing.
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>The walk waits for room in the {@link FileQueue}, and no thread takes files any more. Cure:
 *       whatever ends the task stops the queue, which wakes all.
 *   <li>Counting threads wait for each other's directories, and one of them could not be started.
 *       Cure: {@link SharedDirectories#leave}.
 *   <li>A prefetch waits for reads that the kernel answers from its own memory. Cure: {@link
 *       OrderReader#findReader} searches for files that are being read further on; and a prefetch
 *       ends when nothing was read for six hours, or for ten minutes at the end of the order.
 * </ol>
 *
 * <p><b>What may be forgotten</b>
 *
 * <ul>
 *   <li>Copies that were made stay when a task is cancelled or fails. Other daemons and nodes know
 *       of a task by {@code io.pmfs.daemon.tasks}, not by this package.
 *   <li>Of findings the first 100,000 are kept, a thousand in memory and the rest in a file without
 *       a name. All are counted. They go when the next task starts.
 *   <li>Paths are read from the request as often as needed ({@link TaskPaths}); only one byte for
 *       each inode is kept of them. An ended task keeps none.
 *   <li>{@link FileTask#position} says how much of an order a later prefetch can skip.
 * </ul>
 *
 * <p><b>What paths from outside are allowed to do.</b> They come from any user who may ask the
 * daemon, and from other nodes. Each is relative, at most 4,095 bytes, without . and .. ({@link
 * TaskPaths#checked}); symbolic links are not followed ({@link Tree#find}). A {@link PathFile} is
 * read to its checksum before the task begins.
 */
@NullMarked
package io.pmfs.tasks;

import org.jspecify.annotations.NullMarked;
