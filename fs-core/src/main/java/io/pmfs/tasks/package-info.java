/**
 * Tasks over many files of a dataset: stage, prefetch, check, verify, evict. {@link
 * io.pmfs.tasks.DatasetTasks} starts them, one at a time; a {@link io.pmfs.tasks.RunningTask} does
 * its work on threads of its own and keeps its progress and findings.
 */
@NullMarked
package io.pmfs.tasks;

import org.jspecify.annotations.NullMarked;
