/**
 * A writable mount: {@link io.pmfs.daemon.outputs.OutputWiring} calls the constructors of its
 * parts, {@link io.pmfs.daemon.outputs.ServedOutputs} serves the mount.
 */
@NullMarked
package io.pmfs.daemon.outputs;

import org.jspecify.annotations.NullMarked;
