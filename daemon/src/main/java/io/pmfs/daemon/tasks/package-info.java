/**
 * The tasks of a mount, kept over its daemons and shared by the nodes of a cluster: {@link
 * io.pmfs.daemon.tasks.KeptTasks}.
 */
@NullMarked
package io.pmfs.daemon.tasks;

import org.jspecify.annotations.NullMarked;
