/**
 * The settings of a mount and their origins: options, files and the environment in their order, the
 * places of this machine, and the registry of the mounts that run on it. It starts nothing.
 */
@NullMarked
package io.pmfs.settings;

import org.jspecify.annotations.NullMarked;
