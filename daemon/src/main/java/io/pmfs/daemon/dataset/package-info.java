/**
 * A dataset that is mounted for reading: {@link io.pmfs.daemon.dataset.DatasetWiring} calls the
 * constructors of its parts, {@link io.pmfs.daemon.dataset.ServedDataset} serves it.
 */
@NullMarked
package io.pmfs.daemon.dataset;

import org.jspecify.annotations.NullMarked;
