/**
 * Tasks over many files of a mounted dataset: staging, prefetching, checking, verifying and
 * evicting, one task at a time.
 *
 * <p><b>Start reading</b> at {@link FileTasks}, {@link TaskRequest} and {@link FileTask}: how a
 * task is started, what it does, and what it reports. {@link DatasetTasks} creates a {@link
 * RunningTask} (counts, findings, threads, end) for a request, and the work that it runs:
 *
 * <ul>
 *   <li>{@link StageWork}, {@link CheckWork}, {@link VerifyWork} and {@link EvictWork} get their
 *       files from {@link RequestedFiles}. That looks up the paths, counts the files below them
 *       ahead of the work, and walks ({@link Walk}) them in the order of the request into a {@link
 *       FileQueue}, from which threads take files. If the source consists of sequences, {@link
 *       SequencePass} stages them first.
 *   <li>{@link PrefetchWork} reads its order through an {@link OrderReader} and keeps a {@link
 *       PrefetchWindow} staged; the file system reports reads to the window.
 * </ul>
 *
 * <p>{@link Tree} is the dataset's names as a task sees them, and {@link TaskSource} is the source
 * at the task's pace. Copies are made by {@link io.pmfs.stage.Staging}.
 *
 * <p><b>Threads.</b> {@link RunningTask} starts them: {@code task-1} runs the work and waits for
 * the others, {@code find-N} look up paths, {@code count-N} count, {@code walk-1} walks, {@code
 * file-N} work on files, {@code sequence-N} read sequences. {@code look-N} request attributes from
 * the source and belong to {@link TaskSource}. They end with the work. An exception in one of them
 * fails the task. After {@link FileTask#cancel} the task waits two seconds for its threads; a
 * thread that waits for the source is abandoned, and returns when the source answers. If no thread
 * can be started, the caller does the work; only a prefetch fails.
 *
 * <p><b>Locks</b> are monitors of single objects, and innermost; {@link Findings} writes a file
 * while holding its own. Readers call {@link PrefetchWindow} during each read, so it calls nothing.
 *
 * <p><b>Known deadlocks</b>
 *
 * <ol>
 *   <li>The walk waits for room in the {@link FileQueue}, and no thread takes files any more. Cure:
 *       every end of the task stops the queue, which wakes all.
 *   <li>Counting threads wait for directories of a thread that could not be started. Cure: {@link
 *       SharedDirectories#leave}.
 *   <li>A prefetch waits for reads that the kernel answers from its cache. Cure: {@link
 *       OrderReader#findReader} searches for files being read further on, and a prefetch ends when
 *       nothing was read for six hours, or for ten minutes at the end of the order.
 * </ol>
 *
 * <p><b>What may be forgotten</b>
 *
 * <ul>
 *   <li>Copies stay when a task is cancelled or fails. Other daemons and nodes learn of a task
 *       through {@code io.pmfs.daemon.tasks}.
 *   <li>The first 100,000 findings are kept, a thousand in memory and the rest in a nameless file;
 *       all are counted. The next task discards them.
 *   <li>Paths are read from the request as often as needed ({@link TaskPaths}); only one byte for
 *       each inode is kept. An ended task keeps none.
 *   <li>{@link FileTask#position} says how much of an order a later prefetch can skip.
 * </ul>
 *
 * <p><b>Untrusted paths.</b> Paths come from any user who may use the daemon, and from other nodes.
 * Each is relative, at most 4,095 bytes, without . and .. ({@link TaskPaths#checked}); symbolic
 * links are not followed ({@link Tree#find}). A {@link PathFile} is read to its checksum before the
 * task begins.
 */
@NullMarked
package io.pmfs.tasks;

import org.jspecify.annotations.NullMarked;
